"""Aggregation: how judgments resolve an item, and when a decision can still be undone. Pure."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from django.utils.translation import gettext as _

State = Literal["open", "conflict", "settled", "standing"]
UNDO_WITHIN = timedelta(hours=24)


def aggregate_judgments(grades: Sequence[int], *, overlap: int, flagged: bool = False) -> tuple[State, int | None]:
    """Return the item's state after these current judgments, and its grade where more than half of them agree."""
    if flagged:
        return "conflict", None
    if len(grades) < overlap:
        return "open", None
    grade, votes = Counter(grades).most_common(1)[0]
    # Only an absolute majority counts: with 2 equal grades of 4, adjudicators decide.
    return ("settled", grade) if votes * 2 > len(grades) else ("conflict", None)


def why_not_undo(
    *,
    now: datetime,
    ended_at: datetime,
    settled_by_another: bool = False,
    adjudicated: bool = False,
    exported: bool = False,
) -> str | None:
    """Explain why an author can no longer undo a decision; None when they can."""
    if adjudicated:
        return _("An adjudicator has resolved this pair.")
    if settled_by_another:
        return _("A later judgment resolved this pair together with yours.")
    if exported:
        return _("It is part of an export.")
    if now - ended_at > UNDO_WITHIN:
        return _("It is older than 24 hours.")
    return None
