"""Parsers of the fields of judging forms. A wrong value is an error and is never replaced by a default."""

import re
import time
from collections.abc import Mapping, Sequence

from django.core import signing
from django.http import QueryDict
from django.utils.translation import gettext as _

from annotation.models import Assignment, Membership
from annotation.work.queue.annotators import SubmittedAnswer
from corpus.errors import BadInput
from corpus.models import Collection

LONGEST = 5_000  # Characters of a comment or note.
# Fields of the page that are saved as a draft, and their greatest length.
DRAFTED = {"comment": LONGEST, "note": LONGEST, "contribution": 20_000, "evidence": 20_000, "spans": 2_000}
CONFLICT, GOLD = "conflict", "gold"  # Kinds of tasks that have no lease.
# Not the name of this module, which may move: pages that are open during an upgrade carry the old signature.
SALT = "annotation.judging.shown"


def parse_answer(data: QueryDict, membership: Membership) -> tuple[SubmittedAnswer]:
    """Parse a submitted judgment on the collection's scale."""
    answer = SubmittedAnswer(
        item=parse_whole_number(data, "item"),
        token=data.get("token", ""),
        grade=parse_grade(data, membership.collection),
        comment=parse_text(data, "comment"),
        milliseconds=parse_milliseconds(data),
        idle=parse_milliseconds(data, "idle"),
        spans=parse_spans(data),
    )
    return (answer,)


def parse_item(data: QueryDict, membership: Membership) -> int:
    """Parse the item that the form is about, from its public id on the page."""
    return Assignment.item_of(membership, parse_whole_number(data, "item"))


def parse_grade(data: QueryDict, collection: Collection) -> int:
    """Parse the grade. Raises BadInput where it is missing or not on the collection's scale."""
    if not data.get("grade"):
        raise BadInput(_("Choose a grade. Nothing was saved."))
    return check_grade(parse_whole_number(data, "grade"), collection)


def check_grade(grade: int, collection: Collection) -> int:
    """Return the grade. Raises BadInput where it is beyond the collection's scale."""
    if grade > collection.grades:
        message = _("%(value)s is outside the scale of 0 to %(grades)s. Nothing was saved.")
        raise BadInput(message % {"value": grade, "grades": collection.grades})
    return grade


def parse_whole_number(data: QueryDict, name: str) -> int:
    """Parse a whole number of at most 18 digits, which fits PostgreSQL's bigint."""
    value = data.get(name, "")
    if not (value.isascii() and value.isdigit()) or len(value) > 18:
        raise BadInput(_("The field %(name)s must be a whole number. Nothing was saved.") % {"name": name})
    return int(value)


def parse_text(data: QueryDict, name: str) -> str:
    """Parse a text: without the null characters that PostgreSQL refuses, and cut at its greatest length."""
    return data.get(name, "").replace("\x00", "").replace("\r\n", "\n").strip()[:LONGEST]


def parse_skip(data: QueryDict, membership: Membership) -> tuple[int, str, str]:
    """Parse the item, the token of its lease, and the reason for skipping it."""
    item, reason = parse_whole_number(data, "item"), data.get("reason", "")
    if reason not in Assignment.SkipReason.values:
        raise BadInput(_("Choose a reason for skipping. Nothing was changed."))
    return item, data.get("token", ""), reason


def parse_flag(data: QueryDict, membership: Membership) -> tuple[int, str, str]:
    """Parse the item, the token of its lease, and the note to the adjudicators."""
    return parse_whole_number(data, "item"), data.get("token", ""), parse_text(data, "note")


def parse_milliseconds(data: QueryDict, name: str = "milliseconds") -> int | None:
    """Parse the time on the page as the browser measured it; None where the value is no such time."""
    value = data.get(name, "")
    # No judgment is lost to a wrong clock: a value that is no number counts as not measured, the maximum is a day.
    return min(int(value), 86_400_000) if value.isascii() and value.isdigit() and len(value) < 12 else None


def parse_spans(data: QueryDict) -> tuple[tuple[int, int], ...]:
    """Parse the passages marked in the document, as "12-40,55-60" in characters: in order, without overlap."""
    value = data.get("spans", "")
    if not value:
        return ()
    if not re.fullmatch(r"[0-9]{1,9}-[0-9]{1,9}(,[0-9]{1,9}-[0-9]{1,9}){0,99}", value, re.ASCII):
        raise BadInput(_("The marked evidence could not be read. Nothing was saved; mark it again."))
    marks = (map(int, part.split("-")) for part in value.split(","))
    return check_spans([(start, end) for start, end in marks])


def check_spans(marks: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the marks in order. Raises BadInput where they are empty, overlap or lie beyond any text."""
    ordered = tuple(sorted(marks))
    previous_end = 0
    for start, end in ordered:
        if not previous_end <= start < end < 1_000_000_000:
            raise BadInput(_("Marked passages overlap or are empty. Nothing was saved; mark them again."))
        previous_end = end
    return ordered


def parse_draft(data: QueryDict) -> dict[str, str]:
    """Parse the draft of a form by field, without empty fields."""
    typed = {name: data.get(name, "").replace("\x00", "")[:longest] for name, longest in DRAFTED.items()}
    return {name: value for name, value in typed.items() if value.strip()}


def stamp_shown(kind: str, membership: Membership, item: int) -> str:
    """Return the value of the hidden field `shown`: the signed time at which a pair is shown.

    Conflicts and gold pairs have no lease, so no row stores this time.
    """
    # The wall clock, because another process may read the value: monotonic clocks start at different times.
    return signing.dumps([kind, membership.pk, item, time.time_ns() // 1_000_000], salt=SALT)


def parse_shown(data: Mapping[str, str], kind: str, membership: Membership, item: int) -> int:
    """Return the milliseconds since the pair was shown; 0 where the signed field is missing or about another pair."""
    try:
        *subject, shown_at = signing.loads(data.get("shown", ""), salt=SALT)
    except signing.BadSignature:
        return 0
    return max(0, time.time_ns() // 1_000_000 - shown_at) if subject == [kind, membership.pk, item] else 0
