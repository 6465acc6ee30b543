"""What a member decided, for their own eyes."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_noop

from annotation.models import Assignment, Membership
from annotation.queue.aggregation import UNDO_WITHIN
from annotation.queue.assignment import EVIDENCE

PAGE = 50
DECIDED = [Assignment.State.DONE, Assignment.State.SKIPPED]


@dataclass(frozen=True, slots=True)
class PastDecision:
    """One line of the list. `grade` is None for a flag or a skip, which `what` names."""

    item: int  # Its public id (Assignment.item_of).
    query: str
    document: str
    what: str
    grade: int | None
    comment: str
    ended_at: datetime

    @property
    def recent(self) -> bool:
        """Whether the decision is so young that undo may still be possible."""
        return timezone.now() - self.ended_at < UNDO_WITHIN

    @property
    def cursor(self) -> str:
        """The cursor after which the next page begins."""
        return f"{self.ended_at.isoformat()}_{self.item}"


def list_decisions(membership: Membership, *, before: str = "") -> tuple[list[PastDecision], bool]:
    """Return fifty decisions, newest first, after the cursor `before`; and whether there are more."""
    rows = _decided_assignments(membership)
    moment, _, item = before.partition("_")
    time = parse_datetime(moment) if moment else None
    if time and item.isascii() and item.isdigit():
        rows = rows.filter(
            Q(ended_at__lt=time) | Q(ended_at=time, item_id__lt=Assignment.item_of(membership, int(item)))
        )
    found = list(rows[: PAGE + 1])
    return [_past_decision(row) for row in found[:PAGE]], len(found) > PAGE


def find_decision(membership: Membership, item: int) -> PastDecision | None:
    """The member's decision on one item."""
    row = _decided_assignments(membership).filter(item=item).first()
    return _past_decision(row) if row else None


def neighbour_items(membership: Membership, here: PastDecision) -> tuple[int | None, int | None]:
    """Items of the next newer and the next older decision."""
    rows = Assignment.objects.filter(membership=membership, state__in=DECIDED)
    item = Assignment.item_of(membership, here.item)
    newer = rows.filter(Q(ended_at__gt=here.ended_at) | Q(ended_at=here.ended_at, item_id__gt=item))
    older = rows.filter(Q(ended_at__lt=here.ended_at) | Q(ended_at=here.ended_at, item_id__lt=item))
    return (
        newer.order_by("ended_at", "item_id").values_list("public_id", flat=True).first(),
        older.order_by("-ended_at", "-item_id").values_list("public_id", flat=True).first(),
    )


def _decided_assignments(membership: Membership) -> QuerySet[Assignment]:
    return (
        Assignment.objects.filter(membership=membership, state__in=DECIDED)
        .select_related("item__pair__query", "item__pair__document", "judgment")
        .order_by("-ended_at", "-item_id")
    )


def _past_decision(row: Assignment) -> PastDecision:
    pair = row.item.pair
    judged = row.state == Assignment.State.DONE and not row.flagged and row.judgment is not None
    return PastDecision(
        item=row.public_id,
        query=pair.query.text,
        document=pair.document.title or pair.document.text[:120],
        what=row.get_skip_reason_display()
        if row.state == Assignment.State.SKIPPED
        else gettext_noop("Flagged")
        if row.flagged
        else gettext_noop("Edited")
        if row.item.reason == EVIDENCE
        else "",
        grade=row.judgment.grade if judged and row.judgment else None,
        comment=row.judgment.comment if judged and row.judgment else row.flag_note,
        ended_at=row.ended_at or row.lent_at,
    )
