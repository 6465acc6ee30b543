"""The reranker: jobs on the GPU queue, trained models, scoring. torch is imported below training.trainers only."""

from django.apps import AppConfig


class TrainingConfig(AppConfig):
    """The app's name."""

    name = "training"
