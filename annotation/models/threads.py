"""What annotators wrote about pairs, in comments and flags, and the answers of admins and adjudicators."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models import Assignment, Membership, User
from corpus.models import Collection, Item, Pair, append_only


class ThreadMessage(models.Model):
    """An answer to a comment or flag: a text, an outcome, or both. Append-only; the newest outcome counts."""

    class Outcome(models.TextChoices):
        CHANGED = "changed", _("label changed")
        KEPT = "kept", _("label kept")
        CORRECTED = "corrected", _("document corrected")
        EXCLUDED = "excluded", _("pair excluded")
        NOTED = "noted", _("read, nothing to change")

    assignment = models.ForeignKey(Assignment, models.CASCADE, related_name="messages")
    written_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    text = models.TextField(blank=True)
    outcome = models.CharField(max_length=9, choices=Outcome, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.CheckConstraint(condition=~Q(text="", outcome=""), name="thread_message_says_something")]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.assignment_id}: {self.text[:40] or self.outcome}"


@dataclass(frozen=True, slots=True)
class ThreadReply:
    """A message of a thread as its readers see it."""

    author: str
    text: str
    outcome: str
    at: datetime

    @property
    def outcome_text(self) -> str:
        return str(ThreadMessage.Outcome(self.outcome).label) if self.outcome else ""


class Thread(models.Model):
    """A comment or flag of an annotator with its answers: a row of the database view `annotation_thread`.

    Its id is that of the assignment in which it was written.
    """

    # What became of a flag by itself, without another annotator's or an adjudicator's grade.
    FATES: ClassVar[dict[str, Any]] = {
        "adjudicated": _("An adjudicator has decided this pair."),
        "labelled": _("An admin has set the label of this pair."),
        "withdrawn": _("This pair is no longer judged."),
        "conflict": _("Waiting for an adjudicator."),
        "": _("No outcome yet."),
    }

    public_id = models.BigIntegerField(help_text="As on the annotator's pages (Assignment.item_of).")
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="+")
    pair = models.ForeignKey(Pair, models.DO_NOTHING, related_name="+")
    item = models.ForeignKey(Item, models.DO_NOTHING, related_name="+")
    membership = models.ForeignKey(Membership, models.DO_NOTHING, related_name="+")
    flagged = models.BooleanField()
    text = models.TextField()
    written_at = models.DateTimeField()
    waits = models.BooleanField(help_text="Nobody has answered it, and nothing has settled it.")
    fate = models.CharField(max_length=11)
    news_at = models.DateTimeField(null=True, help_text="Of the newest answer, or of what settled the flag.")
    messages = models.JSONField()

    class Meta:
        managed = False
        db_table = "annotation_thread"

    def __str__(self) -> str:
        return f"{self.item_id} to {self.membership_id}"

    @property
    def outcomes(self) -> list[tuple[str, Any]]:
        """Return the outcomes that an answer may have, with their titles."""
        return ThreadMessage.Outcome.choices

    @property
    def replies(self) -> list[ThreadReply]:
        """Return the answers, the oldest first."""
        rows: list[dict[str, Any]] = self.messages
        return [ThreadReply(**row | {"at": datetime.fromisoformat(row["at"])}) for row in rows]

    @property
    def outcome_text(self) -> str:
        """Return what became of it: the newest outcome in an answer; of a flag else its fate."""
        outcome = next((reply.outcome_text for reply in reversed(self.replies) if reply.outcome), "")
        return outcome or (str(self.FATES[self.fate]) if self.flagged else "")
