"""Passages as texts: where one comes from, which are contiguous, how they are joined and cut. Pure.

BRIGHT-Pro 3.3: contiguous or overlapping passages of one source that support the same aspect are
merged into one; a text that covers several aspects is cut, so that each portion stands under a
single aspect; unrelated text is trimmed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import Any

from corpus.search.text import Sentence, split_sentences

_CHUNK = re.compile(r"(.+)[_#.:/-]([0-9]{1,6})")
# Characters that the end of one passage and the beginning of the next must share to count as the same text.
OVERLAP = 20
SEGMENTS = 200  # Pieces of a text that a person puts under aspects, at most.


@dataclass(frozen=True, slots=True)
class AspectPassage:
    """A document as far as joining needs it: its text, and where the text comes from."""

    id: str
    title: str
    text: str
    source: str
    first: int | None  # The first and last chunk of the source that the text holds; None where nobody knows.
    last: int | None


def source_of(id: str, metadata: Mapping[str, Any]) -> tuple[str, int | None, int | None]:
    """Return source, first and last chunk (None: unknown), by the metadata, else by the number in the id."""
    given = metadata.get("source")
    chunks = metadata.get("chunks")
    first, last = chunks if isinstance(chunks, list) and len(chunks) == 2 else (None, None)
    if isinstance(given, Mapping) and (name := given.get("url") or given.get("document") or given.get("file")):
        return str(name), first, last
    named = _CHUNK.fullmatch(id)
    number = int(named[2]) if named else None
    if first is None:
        first = last = number
    address = given if isinstance(given, str) and given else metadata.get("url")
    return str(address or (named[1] if named else id)), first, last


def overlap_length(before: str, after: str) -> int:
    """Count characters at a text's end with which the other begins; 0 under OVERLAP."""
    most = min(len(before), len(after))
    for start in range(len(before) - most, len(before) - OVERLAP + 1):
        # The short comparison first: the long one would be made at nearly every place.
        if after.startswith(before[start : start + OVERLAP]) and after.startswith(before[start:]):
            return len(before) - start
    return 0


def in_order(passages: Sequence[AspectPassage]) -> list[AspectPassage]:
    """Return the passages by chunk; those without a number stay as they come."""
    return sorted(passages, key=lambda one: one.first or 0)


def find_gaps(passages: Sequence[AspectPassage]) -> list[tuple[str, str]]:
    """Return ids of neighbours with a gap between. Unknown chunks are neighbours."""
    return [
        (one.id, other.id)
        for one, other in pairwise(passages)
        if one.last is not None
        and other.first is not None
        and other.first > one.last + 1
        and not overlap_length(one.text, other.text)
    ]


def join_texts(passages: Sequence[AspectPassage]) -> str:
    """Join the texts in their order; what two neighbours share stands once."""
    text = passages[0].text
    for passage in passages[1:]:
        shared = overlap_length(text, passage.text)
        text = text + passage.text[shared:] if shared else f"{text.rstrip()}\n\n{passage.text.lstrip()}"
    return text


def joinable_groups(passages: Sequence[AspectPassage]) -> list[list[AspectPassage]]:
    """Return the groups of two and more contiguous passages of one source, which may be joined."""
    groups = []
    ordered = sorted(passages, key=lambda one: (one.source, one.first or 0))
    for _name, several in groupby(ordered, key=attrgetter("source")):
        group: list[AspectPassage] = []
        for passage in several:
            if group and find_gaps([group[-1], passage]):
                groups.append(group)
                group = []
            group.append(passage)
        groups.append(group)
    return [group for group in groups if len(group) > 1]


def segment_text(text: str, most: int = SEGMENTS) -> list[Sentence]:
    """Return the sentences of a text; those of a long one several together, so that a person can go through them."""
    found = split_sentences(text)
    size = -(-len(found) // most) or 1  # Rounded up.
    return [Sentence(found[at].start, found[min(at + size, len(found)) - 1].end) for at in range(0, len(found), size)]


def group_portions(text: str, marks: Sequence[str]) -> list[tuple[str, Sentence, list[int]]]:
    """Join neighbouring segments of one aspect: (aspect, characters, [first, last] segment counted from 0).

    `marks` has an aspect for each segment, or "" to trim it. Raises ValueError unless there is one for every segment.
    """
    cut = segment_text(text)
    places = zip(range(len(cut)), marks, strict=True)
    runs = [(aspect, [place for place, _mark in run]) for aspect, run in groupby(places, key=itemgetter(1))]
    return [
        (aspect, Sentence(cut[run[0]].start, cut[run[-1]].end), [run[0], run[-1]]) for aspect, run in runs if aspect
    ]
