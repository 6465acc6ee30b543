"""The reranker: jobs on the GPU queue, trained models, scoring. torch is imported below `trainers` and `erank` only."""

from django.apps import AppConfig


class TrainingConfig(AppConfig):
    """Django's configuration of the app."""

    name = "training"
