"""Runs of a collection: a system's rankings of its queries."""

from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy

from corpus.models import Query
from judges.models.model_jobs import ModelJob
from store.paths import VarPathsJSONField

RUN_NAME = RegexValidator(r"\A[A-Za-z0-9][A-Za-z0-9._+-]{0,99}\Z", "Use letters, digits, . _ + and - (at most 100).")


class Run(ModelJob):
    """A system's ranking of a collection's queries. Its name is its tag in TREC files."""

    class Kind(models.TextChoices):
        IMPORTED = "imported", gettext_lazy("imported")
        BM25 = "bm25", gettext_lazy("BM25")
        STATIC = "static", gettext_lazy("static embeddings")
        HYBRID = "hybrid", gettext_lazy("hybrid")
        REWRITE = "rewrite", gettext_lazy("query rewriting")
        REASONING = "reasoning", gettext_lazy("reasoning-based retrieval")
        DENSE = "dense", gettext_lazy("dense")
        RERANK = "rerank", gettext_lazy("reranked")
        EMBEDDING = "embedding", gettext_lazy("dense, model folder")
        SPARSE = "sparse", gettext_lazy("learned sparse, model folder")
        RERANK_FOLDER = "rerank-folder", gettext_lazy("reranked, model folder")
        SEARCH = "search", gettext_lazy("search endpoint")

    name = models.CharField(max_length=100, validators=[RUN_NAME])
    kind = models.CharField(max_length=16, choices=Kind)
    recipe = VarPathsJSONField(default=dict, help_text="What it was made of: options, names of other runs, judge.")
    instruction = models.TextField(blank=True, help_text="What the system was told, where it takes an instruction.")
    depth = models.PositiveIntegerField(default=0, help_text="Documents of a query, at most.")
    search = models.JSONField(
        default=dict, help_text="Where an index was searched: its recall, and what it was measured on (vector_index)."
    )
    counts = models.JSONField(
        default=dict, help_text="Of a search endpoint: empty, duplicates, without_id, without_text, new, changed."
    )
    is_deleted = models.BooleanField(default=False, help_text="Left out of every table; its rankings stay.")
    kept_in = "recipe"

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["collection", "name"], condition=Q(is_deleted=False), name="run_name")
        ]

    def __str__(self) -> str:
        return self.name


class Ranking(models.Model):
    """A run's ranking for one query: documents best first, in trec_eval's order, with scores."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="rankings", db_index=False)
    query = models.ForeignKey(Query, models.CASCADE, db_constraint=False, related_name="+")
    documents = ArrayField(models.BigIntegerField(), help_text="Primary keys.")
    scores = ArrayField(models.FloatField())
    seconds = models.FloatField(null=True, help_text="That this query took; null: unknown.")
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    text = models.TextField(blank=True, help_text="What was searched for in place of the query.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "query"], name="ranking_once")]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.query_id}"
