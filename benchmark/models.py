"""Rankings of a collection, versions of its qrels, and what filling the holes came to (DESIGN 10)."""

from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from corpus.models import Collection, Query
from jobs.models import LeasedJob

RUN_NAME = RegexValidator(r"\A[A-Za-z0-9][A-Za-z0-9._+-]{0,99}\Z", "Use letters, digits, . _ + and - (at most 100).")


class Run(LeasedJob):
    """A system's ranking of a collection's queries. Its name is its tag in TREC files."""

    class Kind(models.TextChoices):
        IMPORTED = "imported", gettext_lazy("imported")
        BM25 = "bm25", gettext_lazy("BM25")
        HYBRID = "hybrid", gettext_lazy("hybrid")
        REWRITE = "rewrite", gettext_lazy("query rewriting")
        REASONING = "reasoning", gettext_lazy("reasoning-based retrieval")
        DENSE = "dense", gettext_lazy("dense")
        RERANK = "rerank", gettext_lazy("reranked")
        EMBEDDING = "embedding", gettext_lazy("dense, model folder")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="runs")
    name = models.CharField(max_length=100, validators=[RUN_NAME])
    kind = models.CharField(max_length=9, choices=Kind)
    recipe = models.JSONField(default=dict, help_text="What it was made of: options, names of other runs, judge.")
    instruction = models.TextField(blank=True, help_text="What the system was told, where it takes an instruction.")
    depth = models.PositiveIntegerField(default=0, help_text="Documents of a query, at most.")
    campaign = models.BigIntegerField(null=True, help_text="Keeps its calls and what they cost; null: it asks nobody.")
    is_deleted = models.BooleanField(default=False, help_text="Left out of every table; its rankings stay.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["collection", "name"], condition=Q(is_deleted=False), name="run_name")
        ]

    def __str__(self) -> str:
        return self.name


class Ranking(models.Model):
    """What a run returned for one query: documents best first, in trec_eval's order, with their scores."""

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


class Qrels(models.Model):
    """A version of a collection's qrels. It never changes: what is filled is a new version beside it."""

    class Kind(models.TextChoices):
        ORIGINAL = "original", gettext_lazy("original")  # The reference grades that were imported.
        FILLED = "filled", gettext_lazy("filled")
        IMPORTED = "imported", gettext_lazy("imported")
        LABELS = "labels", gettext_lazy("all labels")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="qrels_versions", db_index=False)
    number = models.PositiveIntegerField(help_text="From 1 in each collection.")
    kind = models.CharField(max_length=8, choices=Kind)
    note = models.CharField(max_length=200, blank=True)
    parent = models.ForeignKey("self", models.CASCADE, null=True, related_name="children", help_text="Filled from it.")
    counts = models.JSONField(default=dict, help_text="queries, judged, relevant, and origins {origin: n}.")
    content_hash = models.CharField(max_length=64, blank=True, default="", help_text="sha256 of its rows, in hex.")
    made_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "qrels"
        constraints = [models.UniqueConstraint(fields=["collection", "number"], name="qrels_number")]

    def __str__(self) -> str:
        return f"{self.collection_id} qrels {self.number}"


class QrelsRow(models.Model):
    """The grades of one query in a version of the qrels, documents ascending by primary key."""

    qrels = models.ForeignKey(Qrels, models.CASCADE, related_name="rows", db_index=False)
    query = models.ForeignKey(Query, models.CASCADE, db_constraint=False, related_name="+")
    documents = ArrayField(models.BigIntegerField(), help_text="Primary keys.")
    grades = ArrayField(models.SmallIntegerField())
    origins = ArrayField(models.CharField(max_length=20), help_text="original, a policy's name, people, adjudicator.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["qrels", "query"], name="qrels_row_once")]

    def __str__(self) -> str:
        return f"{self.qrels_id}/{self.query_id}"


class Filling(models.Model):
    """One filling of holes: the pool of some runs, the judging of what nobody judged, and the qrels that came of it."""

    class State(models.TextChoices):
        PREPARING = "preparing", gettext_lazy("preparing")  # A worker writes its pairs.
        JUDGING = "judging", gettext_lazy("being judged")
        PEOPLE = "people", gettext_lazy("waiting for people")
        FINISHING = "finishing", gettext_lazy("finishing")  # A worker makes the filled version.
        FILLED = "filled", gettext_lazy("filled")
        CANCELLED = "cancelled", gettext_lazy("cancelled")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="fillings")
    runs = models.ManyToManyField(Run, related_name="fillings")
    depth = models.PositiveIntegerField()
    before = models.ForeignKey(Qrels, models.CASCADE, related_name="+")
    after = models.OneToOneField(Qrels, models.SET_NULL, null=True, related_name="filling")
    campaign = models.BigIntegerField(null=True, help_text="Null: people judge every pair.")
    pairs = ArrayField(models.BigIntegerField(), default=list, help_text="Ids of the pairs that it asks about.")
    state = models.CharField(max_length=9, choices=State, default=State.JUDGING)
    options = models.JSONField(
        default=dict, help_text="policy, panel, filters, limits; first: so many of the pool; finished_by."
    )
    funnel = models.JSONField(default=dict, help_text="Counts by step: docs/hole-filling.md.")
    error = models.TextField(blank=True, help_text="Why it could not be prepared or finished, one line.")
    looked_at = models.DateTimeField(null=True, help_text="When a worker last looked how far it is.")
    made_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.collection_id} filling {self.pk}"

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes by itself."""
        return self.state in (self.State.FILLED, self.State.CANCELLED)

    @property
    def needs_worker(self) -> bool:
        """Whether a worker has to prepare or finish it before anything else can be done with it."""
        return self.state in (self.State.PREPARING, self.State.FINISHING)


class Report(LeasedJob):
    """What two versions of the qrels say of the runs: computed once for each set of both (docs/hole-filling.md)."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="reports")
    before = models.ForeignKey(Qrels, models.CASCADE, related_name="+")
    after = models.ForeignKey(Qrels, models.CASCADE, related_name="+")
    key = models.CharField(max_length=64, help_text="sha256 of all that it depends on.")
    options = models.JSONField(default=dict, help_text="runs (ids), k, seed.")
    result = models.JSONField(null=True, help_text="By system and over all; docs/hole-filling.md.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "key"], name="report_once")]

    def __str__(self) -> str:
        return f"{self.collection_id} report {self.pk}"


class ReportValues(models.Model):
    """Each query's values of one run and measure, in the order of the report's queries."""

    report = models.ForeignKey(Report, models.CASCADE, related_name="values", db_index=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="+")
    measure = models.CharField(max_length=40)
    before = ArrayField(models.FloatField())
    after = ArrayField(models.FloatField())

    class Meta:
        verbose_name_plural = "report values"
        constraints = [models.UniqueConstraint(fields=["report", "run", "measure"], name="report_values_once")]

    def __str__(self) -> str:
        return f"{self.report_id}/{self.run_id}/{self.measure}"


class Suite(models.Model):
    """Collections that are measured together: each its columns, and the unweighted mean."""

    name = models.CharField(max_length=63, unique=True, validators=[RUN_NAME])
    title = models.CharField(max_length=200, blank=True)
    made_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name


class SuiteMember(models.Model):
    """A collection of a suite; `place` orders the columns."""

    suite = models.ForeignKey(Suite, models.CASCADE, related_name="members", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="suite_memberships")
    place = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["suite", "collection"], name="suite_member_once")]

    def __str__(self) -> str:
        return f"{self.suite_id}: {self.collection_id}"
