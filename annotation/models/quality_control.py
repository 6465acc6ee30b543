"""Experts' gold, consent, and judgments set aside. What people said is append-only."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models import Membership, User
from corpus.models import NUMBER, Collection, Judgment, Numbered, Pair, append_only


class JudgmentExclusion(models.Model):
    """Judgments and texts of one person that were taken out of everything, or brought back. The newest act holds.

    Each of `judgments` and `texts` is a row that this act appended: a withdrawal, or the same once more.
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
    # One reversal for each act: bringing back twice would append the same rows again.
    reverses = models.OneToOneField("self", models.CASCADE, null=True, related_name="reversed_by")
    made_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+", help_text="Null: the rule did.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "annotation_settingaside"
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.membership}: {self.size} judgments"

    @property
    def is_reinstatement(self) -> bool:
        """Return whether this exclusion brings back the judgments of another one, or those on selected pairs."""
        return self.reverses_id is not None or self.why == self.Why.PAIRS

    @property
    def size(self) -> int:
        """Number of judgments and texts that this act appended."""
        return len(self.judgments) + len(self.texts)


class Batch(models.Model):
    """A batch of an annotator's work whose checks were looked at. Append-only."""

    membership = models.ForeignKey(Membership, models.CASCADE, related_name="batches", db_index=False)
    number = models.PositiveIntegerField(help_text="From 0, by the order in which items were lent.")
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
    """A version of what annotators agree to before they begin."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="consent_texts", db_index=False)
    version = models.PositiveIntegerField()
    text = models.TextField()
    # People who wrote a version stay in the record: their account can be closed, not deleted.
    written_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "version"], name="consent_version")]

    def __str__(self) -> str:
        return f"{self.collection} consent {self.version}"

    @classmethod
    def current(cls, collection: Collection) -> "ConsentText | None":
        """The version that holds; None where none was ever written."""
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
    """A sample of pairs that experts grade, so that everything else can be measured (DREAM A.2)."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="gold_sets")
    seed = models.IntegerField(default=0)
    spot = models.FloatField(default=0.2, help_text="Share of the pairs that a senior looks at too.")
    made_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, help_text="No more pairs of it are handed out.")

    class Meta:
        triggers = [NUMBER]
        constraints = [
            models.CheckConstraint(name="gold_spot", condition=Q(spot__gte=0, spot__lte=1)),
            models.UniqueConstraint(fields=["collection", "number"], name="gold_set_number"),
        ]

    def __str__(self) -> str:
        return f"{self.collection} gold {self.number}"


class GoldPair(models.Model):
    """A pair of a gold set, with a reason for and one against beside it."""

    gold_set = models.ForeignKey(GoldSet, models.CASCADE, related_name="pairs", db_index=False)
    pair = models.ForeignKey(Pair, models.CASCADE, related_name="gold_pairs")
    place = models.PositiveIntegerField(help_text="Order in which experts get them; practice comes first.")
    practice = models.BooleanField(default=False)
    spot = models.BooleanField(default=False, help_text="A senior looks at it too.")
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
    """Models' arguments for and against a gold pair, each keeping its stance, for checks."""

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="gold_arguments", db_index=False)
    couples = models.PositiveSmallIntegerField(help_text="Of one agent for and one against.")
    rounds = models.PositiveSmallIntegerField()
    turns = models.JSONField(help_text="As a debate's turns.")
    written_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now())

    # Written once for each size of debate: every check of that pair shows the same ones.
    class Meta:
        constraints = [models.UniqueConstraint(fields=["pair", "couples"], name="gold_arguments_once")]

    def __str__(self) -> str:
        return f"{self.pair_id}: {self.rounds} rounds by {self.written_by}"


class ArgumentsRequest(models.Model):
    """A request for models' arguments about gold pairs; it stays until a worker is done."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="argument_requests", db_index=False)
    gold_set = models.ForeignKey(
        GoldSet, models.CASCADE, null=True, related_name="+", help_text="Null: all gold that could become checks."
    )
    asked_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    written = models.PositiveIntegerField(default=0, help_text="Pairs that have arguments now.")
    lost = models.PositiveIntegerField(default=0, help_text="Pairs about which a model did not argue as asked.")
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["collection", "-id"], name="arguments_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.collection}: {self.written} written"


class GoldAnswer(models.Model):
    """An expert's answer on a gold pair, or the senior's after them. Append-only; the newest of a person holds.

    The reference grade that comes of it is `judgment`: practice has none.
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
