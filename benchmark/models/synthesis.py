"""Synthetic queries, which a model writes with passages (RTriever-Synth), as keywords, or from documents."""

from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy

from corpus.models import NUMBER, Numbered
from judges.models.model_jobs import ModelJob
from store.paths import VarPathsJSONField


class Synthesis(Numbered, ModelJob):
    """A synthesis: synthetic queries from seeds, which are queries of the collection or a file, or documents."""

    class Product(models.TextChoices):
        BUNDLES = "bundles", gettext_lazy("queries with passages")
        KEYWORDS = "keywords", gettext_lazy("keyword forms of training queries")
        ASK = "ask", gettext_lazy("queries from documents")

    kind = models.CharField(max_length=8, choices=Product, default=Product.BUNDLES)
    options = VarPathsJSONField(
        default=dict,
        help_text="source of the seeds, judge, writer, limit, seed, dev, personas, share, pairs, budget, max_calls.",
    )
    key = models.CharField(max_length=64, help_text="sha256 of the seeds and of the options without limits, in hex.")

    class Meta:
        verbose_name_plural = "syntheses"
        triggers = [NUMBER]
        constraints = [
            models.UniqueConstraint(fields=["collection", "key"], name="synthesis_once"),
            models.UniqueConstraint(fields=["collection", "number"], name="synthesis_number"),
        ]

    def __str__(self) -> str:
        return f"{self.collection_id} synthesis {self.number}"

    @property
    def folder(self) -> Path:
        """The folder of the training set, where trainings look for exports."""
        return Path(settings.VAR) / "exports" / self.collection.name / f"synthetic-{self.pk}"


class SyntheticBundle(models.Model):
    """A seed of a synthesis with its outcome: a bundle, or the reason why it was dropped; pending without either.

    The bundle of a query without passages has only the query.
    """

    synthesis = models.ForeignKey(Synthesis, models.CASCADE, related_name="bundles", db_index=False)
    place = models.PositiveIntegerField(help_text="Order among the seeds, from 0.")
    seed_id = models.CharField(max_length=255)
    seed_text = models.TextField()
    query = models.BigIntegerField(
        null=True, help_text="Primary key of the seed, below 0 for a document's; null: it came from a file."
    )
    bundle = models.JSONField(null=True, help_text="docs/workshop.md; synthetic: true.")
    # Of a dropped bundle: the step (a role of conversations), the reason (an outcome or "near-duplicate"), and details.
    step = models.CharField(max_length=10, blank=True, default="")
    reason = models.CharField(max_length=20, blank=True, default="")
    problem = models.TextField(blank=True, default="")
    near_duplicates = models.PositiveSmallIntegerField(
        default=0, help_text="Negatives that were left out because a positive says nearly the same."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["synthesis", "place"], name="synthetic_bundle_once")]

    def __str__(self) -> str:
        return f"{self.synthesis_id}/{self.seed_id}"
