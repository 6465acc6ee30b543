"""A member's own decisions, as nobody else sees them."""

from datetime import datetime

from django.db.models import Case, Q, QuerySet, When
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from annotation.models import Assignment, Membership
from annotation.queue.aggregation import UNDO_WITHIN

PAGE = 50
DECIDED = [Assignment.State.DONE, Assignment.State.SKIPPED]


def list_decisions(membership: Membership, *, before: str = "") -> tuple[list[Assignment], bool]:
    """Return fifty decisions, newest first, after the cursor `before`; and whether there are more."""
    rows = decided_assignments(membership)
    if cursor := _parse_cursor(before):
        time, item = cursor
        rows = rows.filter(Q(ended_at__lt=time) | Q(ended_at=time, item_id__lt=Assignment.item_of(membership, item)))
    found = list(rows[: PAGE + 1])
    return found[:PAGE], len(found) > PAGE


def _parse_cursor(before: str) -> tuple[datetime, int] | None:
    """Parse the time and the item of the last decision on the page before; None for anything else."""
    moment, _, item = before.partition("_")
    try:
        time = parse_datetime(moment)
    except ValueError:
        # Django raises for a date that is written as one and does not exist, such as 31 February.
        return None
    if time is None or timezone.is_naive(time) or not (item.isascii() and item.isdigit()) or len(item) > 18:
        return None
    return time, int(item)


def neighbour_items(here: Assignment) -> tuple[int | None, int | None]:
    """Items of the next newer and the next older decision."""
    rows = Assignment.objects.filter(membership=here.membership_id, state__in=DECIDED)
    newer = rows.filter(Q(ended_at__gt=here.ended_at) | Q(ended_at=here.ended_at, item_id__gt=here.item_id))
    older = rows.filter(Q(ended_at__lt=here.ended_at) | Q(ended_at=here.ended_at, item_id__lt=here.item_id))
    return (
        newer.order_by("ended_at", "item_id").values_list("public_id", flat=True).first(),
        older.order_by("-ended_at", "-item_id").values_list("public_id", flat=True).first(),
    )


def decided_assignments(membership: Membership) -> QuerySet[Assignment]:
    """Return the assignments that a member decided, newest first.

    Each has its `grade` (None for a flag, a skip and edited texts), what they wrote to it (`said`), and whether it is
    so `recent` that it may still be taken back.
    """
    judged = Assignment.judgments()
    return (
        Assignment.objects.filter(membership=membership, state__in=DECIDED)
        .annotate(
            grade=Case(When(judged, then="judgment__grade")),
            said=Case(When(judged, then="judgment__comment"), default="flag_note"),
            recent=Q(ended_at__gt=timezone.now() - UNDO_WITHIN),
        )
        .select_related("item__pair__query", "item__pair__document")
        .order_by("-ended_at", "-item_id")
    )
