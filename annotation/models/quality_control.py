"""Models of quality control: excluded judgments, batches with checks, consent, and experts' gold."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models import Membership, User
from corpus.models import NUMBER, Collection, Judgment, Numbered, Pair, append_only


class JudgmentExclusion(models.Model):
    """An act that excludes judgments and texts of one person from all results, or reinstates them. The newest counts.

    `judgments` and `texts` are the ids of the rows that the act appended: withdrawals, or copies of what was withdrawn.
    """

    class Why(models.TextChoices):
        PERSON = "person", _("manual")
        BATCH = "batch", _("an attention check in the batch was missed")
        PAIRS = "pairs", _("selected pairs were reinstated")

    membership = models.ForeignKey(Membership, models.CASCADE, related_name="set_aside")
    why = models.CharField(max_length=6, choices=Why, default=Why.PERSON)
    note = models.TextField(blank=True)
    batch = models.PositiveIntegerField(null=True, help_text="Number of the batch, where it is about one.")
    since = models.DateTimeField(null=True, help_text="Only judgments from then on; null: all.")
    judgments = ArrayField(models.BigIntegerField(), default=list, help_text="Ids of the rows that this act appended.")
    texts = ArrayField(
        models.BigIntegerField(),
        default=list,
        db_default=[],
        help_text="Ids of the texts that it appended.",
    )
    # At most one reversal of each act: a second one would append the same rows again.
    reverses = models.OneToOneField("self", models.CASCADE, null=True, related_name="reversed_by")
    made_by = models.ForeignKey(
        User, models.PROTECT, null=True, related_name="+", help_text="Null: the rule for batches."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "annotation_settingaside"
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.membership}: {self.size} judgments"

    @property
    def is_reinstatement(self) -> bool:
        """Return whether the act reinstates the judgments of another act, or those on selected pairs."""
        return self.reverses_id is not None or self.why == self.Why.PAIRS

    @property
    def size(self) -> int:
        """Number of judgments and texts that the act appended."""
        return len(self.judgments) + len(self.texts)


class Batch(models.Model):
    """A batch of an annotator's tasks whose attention checks were evaluated. Append-only."""

    membership = models.ForeignKey(Membership, models.CASCADE, related_name="batches", db_index=False)
    number = models.PositiveIntegerField(help_text="From 0, in the order in which items were assigned.")
    size = models.PositiveSmallIntegerField()
    checks = models.PositiveSmallIntegerField(help_text="Attention checks that were answered.")
    missed = models.PositiveSmallIntegerField(help_text="Of them, those that were answered wrongly.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["membership", "number"], name="batch_once")]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.membership} batch {self.number}: {self.missed} of {self.checks} missed"

    @property
    def outcome(self) -> str:
        """Return the batch's outcome: returned, accepted, or unchecked (no check was answered)."""
        return "returned" if self.missed else "accepted" if self.checks else "unchecked"


class ConsentText(models.Model):
    """A version of the text to which annotators consent before they begin."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="consent_texts", db_index=False)
    version = models.PositiveIntegerField()
    text = models.TextField()
    # Authors stay on record: their account can be closed but not deleted.
    written_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "version"], name="consent_version")]

    def __str__(self) -> str:
        return f"{self.collection} consent {self.version}"

    @classmethod
    def current(cls, collection: Collection) -> "ConsentText | None":
        """Return the current version; None where none was ever written."""
        return cls.objects.filter(collection=collection).order_by("-version").first()


class Consent(models.Model):
    """A member's consent to a version of the consent text. Append-only."""

    membership = models.ForeignKey(Membership, models.CASCADE, related_name="consents", db_index=False)
    version = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["membership", "version"], name="consent_once")]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.membership} agreed to {self.version}"


class GoldSet(Numbered):
    """A sample of pairs that experts grade, against which labels are measured (DREAM A.2)."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="gold_sets")
    seed = models.IntegerField(default=0)
    spot = models.FloatField(default=0.2, help_text="Share of the pairs that a senior also reviews.")
    made_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, help_text="No more of its pairs are assigned.")

    class Meta:
        triggers = [NUMBER]
        constraints = [
            models.CheckConstraint(name="gold_spot", condition=Q(spot__gte=0, spot__lte=1)),
            models.UniqueConstraint(fields=["collection", "number"], name="gold_set_number"),
        ]

    def __str__(self) -> str:
        return f"{self.collection} gold {self.number}"


class GoldPair(models.Model):
    """A pair of a gold set, with a reason for relevance and one against it."""

    gold_set = models.ForeignKey(GoldSet, models.CASCADE, related_name="pairs", db_index=False)
    pair = models.ForeignKey(Pair, models.CASCADE, related_name="gold_pairs")
    place = models.PositiveIntegerField(help_text="Order in which experts get them; practice comes first.")
    practice = models.BooleanField(default=False)
    spot = models.BooleanField(default=False, help_text="A senior also reviews it.")
    stratum = models.CharField(max_length=100)
    turns = models.JSONField(default=list, help_text="One turn for and one against, as a debate's turns.")
    written_by = models.CharField(max_length=200, blank=True, help_text="Who generated the two reasons.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["gold_set", "pair"], name="gold_pair_once"),
            models.UniqueConstraint(fields=["gold_set", "place"], name="gold_pair_place"),
        ]

    def __str__(self) -> str:
        return f"{self.gold_set}: {self.pair_id}"


class GoldArguments(models.Model):
    """Models' arguments for and against a gold pair, each keeping its stance, for attention checks."""

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="gold_arguments", db_index=False)
    couples = models.PositiveSmallIntegerField(help_text="Pairs of one agent for and one against.")
    rounds = models.PositiveSmallIntegerField()
    turns = models.JSONField(help_text="As a debate's turns.")
    written_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now())

    # Written once for each size of debate, and shown in every attention check of the pair.
    class Meta:
        constraints = [models.UniqueConstraint(fields=["pair", "couples"], name="gold_arguments_once")]

    def __str__(self) -> str:
        return f"{self.pair_id}: {self.rounds} rounds by {self.written_by}"


class GoldExplanation(models.Model):
    """Why a gold pair has its grade, from a file: newcomers read it after they judged the pair in practice."""

    pair = models.OneToOneField(Pair, models.CASCADE, related_name="gold_explanation")
    text = models.TextField()
    written_by = models.CharField(max_length=200, blank=True, help_text="Its author, as the file names them.")
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.pair_id}: {self.text[:40]}"


class ArgumentsRequest(models.Model):
    """A request for models' arguments about gold pairs, until a worker has finished it."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="argument_requests", db_index=False)
    gold_set = models.ForeignKey(
        GoldSet, models.CASCADE, null=True, related_name="+", help_text="Null: all gold that could become checks."
    )
    asked_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    written = models.PositiveIntegerField(default=0, help_text="Pairs that have arguments now.")
    lost = models.PositiveIntegerField(default=0, help_text="Pairs for which a model's arguments were unusable.")
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["collection", "-id"], name="arguments_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.collection}: {self.written} written"


class GoldAnswer(models.Model):
    """An answer of an expert or a senior reviewer on a gold pair. Append-only; a person's newest is current.

    `judgment` is the resulting reference grade; practice pairs have none.
    """

    class Who(models.TextChoices):
        EXPERT = "expert", _("expert")
        SENIOR = "senior", _("reviewer")

    gold_pair = models.ForeignKey(GoldPair, models.CASCADE, related_name="answers")
    membership = models.ForeignKey(Membership, models.PROTECT, related_name="gold_answers")
    who = models.CharField(max_length=6, choices=Who)
    grade = models.SmallIntegerField()
    comment = models.TextField(blank=True)
    milliseconds = models.PositiveIntegerField(null=True)
    judgment = models.ForeignKey(Judgment, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.gold_pair_id}: {self.grade} ({self.who})"
