"""Comparisons of two documents of a query (A or B): the drawn sets, who is asked, and the preferences."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models import Membership, User
from corpus.models import NUMBER, Assessor, Collection, Numbered, Pair, append_only
from judges.models.retrieval import RetrievalCall


class ComparisonSet(Numbered):
    """A drawn set of comparisons, which people and judges answer until it ends."""

    class State(models.TextChoices):
        OPEN = "open", _("open")
        PAUSED = "paused", _("paused")
        ENDED = "ended", _("ended")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="comparison_sets")
    title = models.CharField(max_length=200, blank=True)
    options = models.JSONField(default=dict, help_text="As it was drawn (annotation.work.comparing.options).")
    seed = models.IntegerField(default=0)
    people = models.PositiveSmallIntegerField(default=1, help_text="People who answer each comparison; 0: judges only.")
    created_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    paused_at = models.DateTimeField(null=True, help_text="People get none of it until it is resumed.")
    ended_at = models.DateTimeField(null=True)

    class Meta:
        triggers = [NUMBER]
        constraints = [models.UniqueConstraint(fields=["collection", "number"], name="comparison_set_number")]

    def __str__(self) -> str:
        return f"{self.collection} comparisons {self.number}"

    @property
    def state(self) -> State:
        """Whether people get its comparisons."""
        if self.ended_at is not None:
            return self.State.ENDED
        return self.State.OPEN if self.paused_at is None else self.State.PAUSED


class Comparison(models.Model):
    """Two pairs of one query, whose documents are compared. `seq` is its public number in the set, from 1."""

    set = models.ForeignKey(ComparisonSet, models.CASCADE, related_name="comparisons", db_index=False)
    first = models.ForeignKey(Pair, models.CASCADE, related_name="+", help_text="The pair of document A.")
    second = models.ForeignKey(Pair, models.CASCADE, related_name="+", help_text="The pair of document B.")
    seq = models.PositiveIntegerField()
    taken = models.PositiveSmallIntegerField(default=0, db_default=0, help_text="People who have or had it assigned.")

    class Meta:
        constraints = [
            models.CheckConstraint(name="comparison_of_two", condition=~Q(first=F("second"))),
            models.UniqueConstraint(fields=["set", "seq"], name="comparison_seq"),
            models.UniqueConstraint(fields=["set", "first", "second"], name="comparison_once"),
        ]

    def __str__(self) -> str:
        return f"{self.set_id}/{self.seq}"


class ComparisonLease(models.Model):
    """A comparison assigned to one person: open until it is answered, or until the lease expires."""

    comparison = models.ForeignKey(Comparison, models.CASCADE, related_name="leases", db_index=False)
    membership = models.ForeignKey(Membership, models.CASCADE, related_name="comparison_leases")
    swapped = models.BooleanField(default=False, help_text="Document B is shown on the left.")
    is_open = models.BooleanField(default=True)
    lease_until = models.DateTimeField()
    answered_at = models.DateTimeField(null=True, help_text="Last; also of an answer that was undone.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["comparison", "membership"], name="comparison_lease_once")]
        indexes = [models.Index(fields=["lease_until"], name="comparison_lease_expiry", condition=Q(is_open=True))]

    def __str__(self) -> str:
        return f"{self.comparison_id} to {self.membership_id}"


class Preference(models.Model):
    """An assessor's answer to a comparison. Append-only: the newest of an assessor counts."""

    class Outcome(models.TextChoices):
        FIRST = "first", _("first preferred")
        SECOND = "second", _("second preferred")
        EQUAL = "equal", _("equal")
        BOTH_BAD = "both_bad", _("both bad")

    comparison = models.ForeignKey(Comparison, models.CASCADE, related_name="preferences", db_index=False)
    assessor = models.ForeignKey(Assessor, models.PROTECT, related_name="preferences")
    outcome = models.CharField(
        max_length=8, choices=Outcome, blank=True, help_text="Empty: withdraws the assessor's earlier answer."
    )
    swapped = models.BooleanField(default=False, help_text="Document B was shown first.")
    seconds = models.FloatField(null=True, help_text="Time on the comparison, as the page measured it.")
    call = models.ForeignKey(
        RetrievalCall, models.SET_NULL, null=True, related_name="+", db_index=False, help_text="The judge's call."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["comparison", "assessor", "-id"], name="preference_newest")]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.comparison_id}: {self.outcome}"
