"""The set of a query's aspects and what may be done to it: every act takes a set and returns the next one.

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

# What an importance means (BRIGHT-Pro appendix A).
ANCHORS = {
    5: gettext_lazy("dominant"),
    4: gettext_lazy("strong"),
    3: gettext_lazy("moderate"),
    2: gettext_lazy("supporting"),
    1: gettext_lazy("peripheral"),
}
MOST = 20  # Aspects of a query: a compact set, not a list of facts.
LONGEST = 2_000
_NUMBERED = re.compile(r"a([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class AspectSnapshot:
    """An aspect in the form in which a revision stores it."""

    id: str
    text: str
    rationale: str = ""
    importance: int = 3


Entries = tuple[AspectSnapshot, ...]


class Wording(NamedTuple):
    """The part of an aspect that a person writes: text, need and importance."""

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
    """Return the wording without space around it. BadInput unless as in BRIGHT-Pro 3.2."""
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
    # True would pass for 1: a bool is an int.
    if isinstance(value, bool) or not isinstance(value, int) or value not in ANCHORS:
        raise BadInput(_("Choose an importance from 1 (peripheral) to 5 (dominant)."))
    return value


def next_ids(known: Iterable[str], count: int) -> list[str]:
    """Return ids for new aspects: a1, a2, ... beyond all that the query ever had, so that no id means two things."""
    last = max((int(found[1]) for one in known if (found := _NUMBERED.fullmatch(one))), default=0)
    return [f"a{last + place}" for place in range(1, count + 1)]


def add(entries: Entries, id: str, wording: Wording) -> Entries:
    """Return the set with one more aspect at the end."""
    if len(entries) >= MOST:
        raise BadInput(_("A query can have at most %(most)d aspects. Merge some first.") % {"most": MOST})
    return (*entries, AspectSnapshot(id, *check_wording(wording)))


def clarify(entries: Entries, id: str, wording: Wording) -> Entries:
    """Return the set with another wording of one aspect; its importance and its documents stay."""
    found = find_aspect(entries, id)
    new = check_wording(wording._replace(importance=found.importance))
    return tuple(AspectSnapshot(id, *new) if one.id == id else one for one in entries)


def weigh(entries: Entries, given: Mapping[str, int]) -> Entries:
    """Return the set with other importances, by id; an aspect that is not named keeps its own."""
    for id in given:
        find_aspect(entries, id)
    return tuple(replace(one, importance=check_importance(given.get(one.id, one.importance))) for one in entries)


def split(entries: Entries, id: str, parts: Sequence[tuple[str, Wording]]) -> Entries:
    """Return the set with two and more aspects in the place of one."""
    find_aspect(entries, id)
    if len(parts) < 2:
        raise BadInput(_("To split an aspect, enter at least two new ones."))
    if len(entries) - 1 + len(parts) > MOST:
        raise BadInput(_("A query can have at most %(most)d aspects. Merge some first.") % {"most": MOST})
    new = [AspectSnapshot(name, *check_wording(wording)) for name, wording in parts]
    return tuple(part for one in entries for part in (new if one.id == id else [one]))


def merge(entries: Entries, ids: Sequence[str], new_id: str, wording: Wording) -> Entries:
    """Return the set with one aspect in the place of the first of several."""
    chosen = [find_aspect(entries, id).id for id in dict.fromkeys(ids)]
    if len(chosen) < 2:
        raise BadInput(_("Choose at least two aspects to merge."))
    first = next(one.id for one in entries if one.id in chosen)
    new = AspectSnapshot(new_id, *check_wording(wording))
    return tuple(new if one.id == first else one for one in entries if one.id == first or one.id not in chosen)


def remove(entries: Entries, id: str) -> Entries:
    """Return the set without one aspect."""
    find_aspect(entries, id)
    return tuple(one for one in entries if one.id != id)


def find_aspect(entries: Entries, id: str) -> AspectSnapshot:
    """Return the aspect of this id. Raises BadInput where there is none."""
    for one in entries:
        if one.id == id:
            return one
    raise BadInput(_("Aspect %(id)s no longer exists. See the latest version.") % {"id": id})
