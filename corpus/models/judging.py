"""Assessors, tasks, judgments, labels and texts of pairs."""

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from corpus.models import append_only
from corpus.models.texts import Collection, Pair, Query


class Assessor(models.Model):
    """The source of judgments: a person, a version of a judge, a policy, an import, or the reference."""

    class Kind(models.TextChoices):
        PERSON = "person", _("person")
        JUDGE = "judge", _("judge")
        POLICY = "policy", _("policy")
        HUMAN_IMPORT = "human-import", _("imported people")
        JUDGE_IMPORT = "judge-import", _("imported judge")
        REFERENCE = "reference", _("reference")

    collection = models.ForeignKey(Collection, models.CASCADE)
    kind = models.CharField(max_length=12, choices=Kind)
    name = models.CharField(max_length=150)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "kind", "name"], name="assessor_name")]

    def __str__(self) -> str:
        return self.name


class Item(models.Model):
    """A task: a pair that waits for people, for one reason. Judges, annotation and benchmark create them."""

    class Reason(models.TextChoices):
        DISAGREEMENT = "disagreement", _("the two sides did not agree")
        CONFLICT = "conflict", _("the debate and the vote disagree")
        SPLIT = "split", _("too few equal votes")
        UNPARSED = "unparsed", _("an answer could not be read")
        REFUSED = "refused", _("a judge refused to answer")
        ERROR = "error", _("a judge could not be reached")
        STOPPED = "stopped", _("labels from this route were wrong too often")
        POLICY = "policy", _("people judge every pair")
        UNCERTAIN = "uncertain", _("the judge is least certain about it")
        LONG = "long", _("its document is longer than judges read")
        HOLE = "hole", _("a system returned it, but it is not in the qrels")
        REQUESTED = "requested", _("sent to people by an admin")
        AUDIT = "audit", _("drawn for a label audit")
        EVIDENCE = "evidence", _("contribution and evidence to edit")
        STUDY = "study", _("part of a paired study")
        CHECK = "check", _("an attention check")
        REPEAT = "repeat", _("repeated pair")
        QUALIFICATION = "qualification", _("part of the qualification test")

    class Arm(models.TextChoices):
        SHOWN = "shown", _("the debate is shown")
        HIDDEN = "hidden", _("the debate is hidden")
        REVEAL = "reveal", _("a first vote, then the debate, then the final vote")

    class State(models.TextChoices):
        OPEN = "open", _("open")
        CONFLICT = "conflict", _("waits for an adjudicator")
        SETTLED = "settled", _("settled")
        WITHDRAWN = "withdrawn", _("withdrawn")
        # Checks and the qualification test, which are in no queue and which no judgment settles.
        STANDING = "standing", _("assigned to everyone once")

    # No index where another one begins with the same column: every lease updates all indexes.
    collection = models.ForeignKey(Collection, models.CASCADE, db_index=False)
    pair = models.ForeignKey(Pair, models.CASCADE, related_name="items", db_index=False)
    campaign = models.BigIntegerField(null=True, help_text="The campaign that escalated it: judges_campaign's id.")
    reason = models.CharField(max_length=13, choices=Reason)
    seq = models.PositiveSmallIntegerField(default=0)
    arm = models.CharField(
        max_length=6,
        choices=Arm,
        blank=True,
        default="",
        db_default="",
        help_text="What of the debate is shown; drawn when the item is first lent, unless its maker chose it.",
    )
    shown_as = models.CharField(
        max_length=13,
        choices=Reason,
        blank=True,
        default="",
        db_default="",
        help_text="The reason whose words an annotator reads; empty: its own.",
    )
    turns = models.JSONField(null=True, help_text="The debate that is shown with it; null: the pair's newest.")
    reserved = models.BooleanField(
        default=False, db_default=False, help_text="Lent only to those whom annotation_reservedfor names."
    )
    state = models.CharField(max_length=9, choices=State, default=State.OPEN)
    priority = models.FloatField(default=0.0, help_text="Smaller is lent first.")
    place = models.BigIntegerField(
        help_text="Order among equals, from the sequence corpus_item_place; new when returned."
    )
    overlap = models.PositiveSmallIntegerField(default=1, help_text="People who shall judge it.")
    taken = models.PositiveSmallIntegerField(default=0, help_text="Open leases and judgments on it.")
    done = models.PositiveSmallIntegerField(default=0, help_text="Judgments on it.")
    created_at = models.DateTimeField(db_default=Now())
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pair", "reason", "seq"], name="item_once"),
            # Checked by the database, because every lease and judgment increments these in one statement.
            models.CheckConstraint(name="item_taken", condition=Q(taken__lte=F("overlap"))),
            models.CheckConstraint(name="item_done", condition=Q(done__lte=F("taken"))),
        ]
        indexes = [
            # Only assignable items are indexed, so that a million settled ones cost nothing.
            models.Index(
                fields=["collection", "priority", "place"],
                name="item_queue",
                condition=Q(state="open", taken__lt=F("overlap")),
            ),
            models.Index(fields=["collection", "state", "reason"], name="item_state"),
            models.Index(fields=["campaign", "state"], name="item_campaign"),
        ]

    def __str__(self) -> str:
        return f"{self.pair_id} ({self.reason})"


class JudgmentQuerySet(models.QuerySet["Judgment"]):
    def heads(self) -> "JudgmentQuerySet":
        """Return the rows that are not superseded; one without a grade withdraws its chain."""
        return self.filter(superseded_by=None)


class Judgment(models.Model):
    """An assessor's grade for a pair. Append-only: a changed judgment supersedes the earlier one."""

    class Step(models.TextChoices):
        FIRST = "first", _("first")
        FINAL = "final", _("final")
        ADJUDICATION = "adjudication", _("adjudication")
        IMPORT = "import", _("import")

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="judgments")
    aspect = models.ForeignKey("corpus.Aspect", models.CASCADE, null=True)
    assessor = models.ForeignKey(Assessor, models.PROTECT)
    item = models.ForeignKey(Item, models.CASCADE, null=True, related_name="judgments")
    step = models.CharField(max_length=12, choices=Step)
    grade = models.SmallIntegerField(null=True, help_text="Null withdraws the judgment that it supersedes.")
    supersedes = models.OneToOneField("self", models.CASCADE, null=True, related_name="superseded_by")
    arm = models.CharField(max_length=20, blank=True, help_text="What of the debate was shown: shown, hidden, reveal.")
    guideline = models.PositiveIntegerField(default=0, help_text="Version of the guidelines that held.")
    milliseconds = models.PositiveIntegerField(null=True, help_text="Time on the page.")
    idle_milliseconds = models.PositiveIntegerField(
        null=True, help_text="Of it, with the page hidden or untouched for a minute and more."
    )
    spans = models.JSONField(null=True, help_text="[start, end) of the document's characters, marked as evidence.")
    comment = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())

    objects = JudgmentQuerySet.as_manager()

    # A chain starts once; the unique column `supersedes` allows each judgment one successor.
    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["item", "assessor", "step"],
                condition=Q(supersedes=None, item__isnull=False),
                name="judgment_once",
            ),
            models.UniqueConstraint(
                fields=["pair", "aspect", "assessor", "step"],
                condition=Q(supersedes=None, item=None),
                # Imported grades for the whole pair have no aspect; by default null is distinct from null.
                nulls_distinct=False,
                name="judgment_import_once",
            ),
        ]
        indexes = [
            # Rows come in the order of their time, so the ranges of blocks find a day at no cost to a judgment.
            BrinIndex(fields=["created_at"], name="judgment_time", autosummarize=True),
            models.Index(fields=["pair"], name="judgment_commented", condition=~Q(comment="")),
        ]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.pair_id}: {self.grade}"


class CurrentJudgment(models.Model):
    """A judgment that counts: neither superseded nor withdrawn.

    A row of the database view `current_judgment`, which has every column of a judgment; the fields
    here are those that queries use. The view is based on another one, `judgment_head`, which also
    has the withdrawals.
    """

    pair = models.ForeignKey(Pair, models.DO_NOTHING, related_name="+")
    aspect = models.ForeignKey("corpus.Aspect", models.DO_NOTHING, null=True, related_name="+")
    assessor = models.ForeignKey(Assessor, models.DO_NOTHING, related_name="+")
    item = models.ForeignKey(Item, models.DO_NOTHING, null=True, related_name="+")
    step = models.CharField(max_length=12, choices=Judgment.Step)
    grade = models.SmallIntegerField()
    comment = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        # A migration creates the view; Django only reads it.
        managed = False
        db_table = "current_judgment"

    def __str__(self) -> str:
        return f"{self.pair_id}: {self.grade}"


class Label(models.Model):
    """The resolved grade of a pair, derived from its judgments."""

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="labels", db_index=False)
    aspect = models.ForeignKey("corpus.Aspect", models.CASCADE, null=True)
    grade = models.SmallIntegerField()
    origin = models.CharField(max_length=20, help_text="The policy's name, or people, adjudicator.")
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        # Labels of the whole pair have no aspect, and without nulls_distinct=False there could be two.
        constraints = [models.UniqueConstraint(fields=["pair", "aspect"], nulls_distinct=False, name="label_once")]

    def __str__(self) -> str:
        return f"{self.pair_id}: {self.grade} ({self.origin})"


class Target(models.Model):
    """A version of the contribution and evidence of a relevant pair. Append-only.

    A judge's text that fails its measures is stored as well, with `good` false, for people to edit.
    Undo appends a row that withdraws another. `corpus.evidence.targets` selects the valid one.
    """

    class Kind(models.TextChoices):
        JUDGE = "judge", _("judge")
        PERSON = "person", _("person")

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="targets", db_index=False)
    version = models.PositiveIntegerField(help_text="From 1 for each pair.")
    kind = models.CharField(max_length=6, choices=Kind)
    writer = models.CharField(max_length=150, help_text="The judge's or the person's name.")
    contribution = models.TextField(blank=True)
    evidence = models.TextField(blank=True)
    measures = models.JSONField(default=dict, help_text="By rule and judged, and the problems that were found.")
    good = models.BooleanField(help_text="It may be learned from.")
    rating = models.PositiveSmallIntegerField(
        null=True, help_text="1 to 5: what its writer thought of the texts that they were shown."
    )
    item = models.ForeignKey(Item, models.CASCADE, null=True, related_name="targets", help_text="On whose desk it was.")
    withdraws = models.OneToOneField("self", models.CASCADE, null=True, related_name="withdrawn_by")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pair", "version"], name="target_version")]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.pair_id} version {self.version}"


class ExportRecord(models.Model):
    """A record that an export has a collection's data of some time, which the withdrawal of a judgment must report."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="exported", db_index=False)
    # No foreign key: exports belong to an app above this one.
    export = models.BigIntegerField(db_index=True, help_text="Id of the snapshot.")
    number = models.PositiveIntegerField(db_default=0, help_text="Of the export in its home.")
    at = models.DateTimeField(db_default=Now(), help_text="The moment whose data it holds.")
    home = models.CharField(max_length=63, blank=True, db_default="", help_text="The collection whose export it is.")
    format = models.CharField(max_length=30, blank=True, db_default="")
    sha256 = models.CharField(
        max_length=64, blank=True, db_default="", help_text="Of its manifest, in hex: trainings know it by this."
    )
    by_policies = models.BooleanField(
        default=False, db_default=False, help_text="It holds what policies said, whatever people said afterwards."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "export"], name="export_record_once")]
        indexes = [
            models.Index(fields=["collection", "-at"], name="export_record_newest"),
            models.Index(fields=["sha256"], name="export_record_sha256"),
        ]

    def __str__(self) -> str:
        return f"{self.collection_id} in {self.export}"

    @classmethod
    def is_exported(cls, collection: int, since: datetime) -> bool:
        """Return whether an export has, or will have, data of that time or later."""
        return cls.objects.filter(collection=collection, at__gte=since).exists()


class ExportedLabels(models.Model):
    """The labels of one query in an export, pairs ascending (docs/quality.md)."""

    record = models.ForeignKey(ExportRecord, models.CASCADE, related_name="labels", db_index=False)
    # Queries are only deleted with their collection, and checking each row of a large export would be slow.
    query = models.ForeignKey(Query, models.CASCADE, db_constraint=False, related_name="+")
    split = models.CharField(max_length=5, blank=True, help_text="train or dev; empty: no training set.")
    pairs = ArrayField(models.BigIntegerField(), help_text="Primary keys.")
    grades = ArrayField(models.SmallIntegerField(null=True), help_text="Null: judgments on the pair, not its label.")
    origins = ArrayField(models.CharField(max_length=150), help_text="The labels' origins of that moment.")

    class Meta:
        verbose_name_plural = "exported labels"
        constraints = [models.UniqueConstraint(fields=["record", "query"], name="exported_labels_once")]

    def __str__(self) -> str:
        return f"{self.record_id}/{self.query_id}"
