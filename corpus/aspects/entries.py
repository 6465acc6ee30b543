"""The set of a query's aspects and its operations, each of which takes a set and returns a new one.

BRIGHT-Pro 3.2: an aspect is a coherent sub-need, justified in one or two sentences and weighed from
1 to 5; the weights of a query's aspects add up to 1. 3.3: aspects are clarified, subdivided and
consolidated while documents are collected.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corpus.errors import BadInput
from corpus.search.text import split_sentences

# The meaning of each importance (BRIGHT-Pro appendix A).
ANCHORS = {
    5: gettext_lazy("dominant"),
    4: gettext_lazy("strong"),
    3: gettext_lazy("moderate"),
    2: gettext_lazy("supporting"),
    1: gettext_lazy("peripheral"),
}
MOST = 20  # The most aspects of a query, so that the set is compact and not a list of facts.
LONGEST = 2_000  # Characters of a text or a rationale.
_NUMBERED = re.compile(r"a([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class AspectSnapshot:
    """An aspect in the form in which a revision stores it."""

    id: str
    text: str
    rationale: str = ""
    importance: int = 3


Entries = tuple[AspectSnapshot, ...]  # The set of a query, in the order in which it is shown.


class Wording(NamedTuple):
    """The part of an aspect that a person writes: its text, why an answer needs it, and its importance."""

    text: str
    rationale: str
    importance: int = 3


def load_aspects(rows: Sequence[Mapping[str, Any]]) -> Entries:
    """Return the set from a revision's JSON."""
    return tuple(AspectSnapshot(**row) for row in rows)


def importance_weights(importances: Sequence[int]) -> list[float]:
    """Return importances as weights that add up to 1, in the same order; [] for none."""
    total = sum(importances)
    return [importance / total for importance in importances]


def check_wording(wording: Wording) -> Wording:
    """Return the wording with white space normalised. Raises BadInput for one that BRIGHT-Pro 3.2 does not allow."""
    text, rationale = " ".join(wording.text.split()), " ".join(wording.rationale.split())
    if not text:
        raise BadInput(_("Enter what the aspect is about."))
    if max(len(text), len(rationale)) > LONGEST:
        raise BadInput(_("Shorten it to %(most)d characters.") % {"most": LONGEST})
    if not 1 <= len(split_sentences(rationale)) <= 2:
        raise BadInput(_("Explain in one or two sentences why an answer needs this aspect."))
    return Wording(text, rationale, check_importance(wording.importance))


def check_importance(value: object) -> int:
    """Return an importance from 1 to 5. Raises BadInput for anything else."""
    # A bool is an int in Python, and True equals 1.
    if isinstance(value, bool) or not isinstance(value, int) or value not in ANCHORS:
        raise BadInput(_("Choose an importance from 1 (peripheral) to 5 (dominant)."))
    return value


def next_ids(earlier_ids: Iterable[str], count: int) -> list[str]:
    """Return ids for new aspects, a1, a2, ..., above all that the query ever had, so that no id is reused."""
    last = max((int(match[1]) for id in earlier_ids if (match := _NUMBERED.fullmatch(id))), default=0)
    return [f"a{last + offset}" for offset in range(1, count + 1)]


def add(entries: Entries, id: str, wording: Wording) -> Entries:
    """Return the set with a new aspect at the end."""
    if len(entries) >= MOST:
        raise BadInput(_("A query can have at most %(most)d aspects. Merge some first.") % {"most": MOST})
    return (*entries, AspectSnapshot(id, *check_wording(wording)))


def clarify(entries: Entries, id: str, wording: Wording) -> Entries:
    """Return the set with a new wording of an aspect; its importance and its documents stay."""
    aspect = find_aspect(entries, id)
    new_wording = check_wording(wording._replace(importance=aspect.importance))
    return tuple(AspectSnapshot(id, *new_wording) if entry.id == id else entry for entry in entries)


def weigh(entries: Entries, importances: Mapping[str, int]) -> Entries:
    """Return the set with new importances, by id; other aspects keep theirs."""
    for id in importances:
        find_aspect(entries, id)
    return tuple(
        replace(entry, importance=check_importance(importances.get(entry.id, entry.importance))) for entry in entries
    )


def split(entries: Entries, id: str, parts: Sequence[tuple[str, Wording]]) -> Entries:
    """Return the set with two or more aspects in place of one."""
    find_aspect(entries, id)
    if len(parts) < 2:
        raise BadInput(_("To split an aspect, enter at least two new ones."))
    if len(entries) - 1 + len(parts) > MOST:
        raise BadInput(_("A query can have at most %(most)d aspects. Merge some first.") % {"most": MOST})
    new_entries = [AspectSnapshot(name, *check_wording(wording)) for name, wording in parts]
    return tuple(part for entry in entries for part in (new_entries if entry.id == id else [entry]))


def merge(entries: Entries, ids: Sequence[str], new_id: str, wording: Wording) -> Entries:
    """Return the set with one aspect in place of several, at the position of the first."""
    merged_ids = [find_aspect(entries, id).id for id in dict.fromkeys(ids)]
    if len(merged_ids) < 2:
        raise BadInput(_("Choose at least two aspects to merge."))
    first = next(entry.id for entry in entries if entry.id in merged_ids)
    merged_entry = AspectSnapshot(new_id, *check_wording(wording))
    return tuple(
        merged_entry if entry.id == first else entry
        for entry in entries
        if entry.id == first or entry.id not in merged_ids
    )


def remove(entries: Entries, id: str) -> Entries:
    """Return the set without one aspect."""
    find_aspect(entries, id)
    return tuple(entry for entry in entries if entry.id != id)


def find_aspect(entries: Entries, id: str) -> AspectSnapshot:
    """Return the aspect with this id. Raises BadInput where there is none."""
    for entry in entries:
        if entry.id == id:
            return entry
    raise BadInput(_("Aspect %(id)s no longer exists. See the latest version.") % {"id": id})
