"""Pushes of exports and models to a hub, which a worker does (config.hub)."""

from django.db import models
from django.utils.translation import gettext_lazy

from corpus.models import Collection
from jobs.models import LeasedJob


class HubPush(LeasedJob):
    """A push of the folder of an export or a published model to a repository of a hub."""

    class Kind(models.TextChoices):
        DATASET = "dataset", gettext_lazy("export")
        MODEL = "model", gettext_lazy("model")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="hub_pushes")
    kind = models.CharField(max_length=7, choices=Kind)
    number = models.BigIntegerField(help_text="Of the export, or the primary key of the model.")
    repository = models.CharField(max_length=200)
    public = models.BooleanField(default=False)
    address = models.CharField(max_length=500, blank=True, help_text="Of the repository, once it was pushed.")

    def __str__(self) -> str:
        return f"{self.kind} {self.number} to {self.repository}"
