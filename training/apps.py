"""The app of training: jobs on the GPU queue, trained models and their scores. Pages do not import torch."""

from django.apps import AppConfig


class TrainingConfig(AppConfig):
    """Django's configuration of the app."""

    name = "training"
