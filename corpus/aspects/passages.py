"""Passages as texts: where one comes from, which are contiguous, how they are joined and cut. Pure.

BRIGHT-Pro 3.3: contiguous or overlapping passages of one source that support the same aspect are merged into one; a
text that covers several aspects is cut, so that each portion stands under a single aspect; unrelated text is trimmed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from corpus.search.text import Sentence, split_sentences

_CHUNK = re.compile(r"(.+)[_#.:/-]([0-9]{1,6})")
# Characters that the end of one passage and the beginning of the next must share to count as the same text.
OVERLAP = 20
SEGMENTS = 200  # Pieces of a text that a person puts under aspects, at most.


@dataclass(frozen=True, slots=True)
class PassageSource:
    """Where a passage comes from, and which of its chunks it is (first and last; None where nobody knows)."""

    name: str
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class AspectPassage:
    """A document as far as joining needs it."""

    id: str
    title: str
    text: str
    source: PassageSource


@dataclass(frozen=True, slots=True)
class Portion:
    """Characters [start, end) of a text, under one aspect; its first and last segment, counted from 0."""

    aspect: str
    start: int
    end: int
    first: int
    last: int


def source_of(id: str, metadata: Mapping[str, Any]) -> PassageSource:
    """By the metadata's source or url; else by the id, whose number at the end is taken for the chunk's."""
    given = metadata.get("source")
    chunks = metadata.get("chunks")
    first, last = chunks if isinstance(chunks, list) and len(chunks) == 2 else (None, None)
    if isinstance(given, Mapping) and (name := given.get("url") or given.get("document") or given.get("file")):
        return PassageSource(str(name), first, last)
    named = _CHUNK.fullmatch(id)
    number = int(named[2]) if named else None
    if first is None:
        first = last = number
    address = given if isinstance(given, str) and given else metadata.get("url")
    return PassageSource(str(address or (named[1] if named else id)), first, last)


def overlap_length(before: str, after: str) -> int:
    """Characters at the end of one text with which the other begins; 0 when fewer than OVERLAP."""
    most = min(len(before), len(after))
    for start in range(len(before) - most, len(before) - OVERLAP + 1):
        if after.startswith(before[start : start + OVERLAP]) and after.startswith(before[start:]):
            return len(before) - start
    return 0


def in_order(passages: Sequence[AspectPassage]) -> list[AspectPassage]:
    """By chunk; those without a number stay as they come."""
    return sorted(passages, key=lambda one: one.source.first if one.source.first is not None else 0)


def find_gaps(passages: Sequence[AspectPassage]) -> list[tuple[str, str]]:
    """Neighbours (in order) between which something is missing: (id, id). Unknown chunks count as neighbours."""
    return [
        (one.id, other.id)
        for one, other in pairwise(passages)
        if one.source.last is not None
        and other.source.first is not None
        and other.source.first > one.source.last + 1
        and not overlap_length(one.text, other.text)
    ]


def join_texts(passages: Sequence[AspectPassage]) -> str:
    """The texts in order as one; what two neighbours share stands once."""
    text = passages[0].text
    for passage in passages[1:]:
        shared = overlap_length(text, passage.text)
        text = text + passage.text[shared:] if shared else f"{text.rstrip()}\n\n{passage.text.lstrip()}"
    return text


def joinable_groups(passages: Sequence[AspectPassage]) -> list[list[AspectPassage]]:
    """Groups of two and more contiguous passages of one source: what may be joined."""
    groups = []
    ordered = sorted(passages, key=lambda one: (one.source.name, one.source.first or 0))
    for _name, several in groupby(ordered, key=lambda one: one.source.name):
        group: list[AspectPassage] = []
        for passage in several:
            if group and find_gaps([group[-1], passage]):
                groups.append(group)
                group = []
            group.append(passage)
        groups.append(group)
    return [group for group in groups if len(group) > 1]


def segment_text(text: str, most: int = SEGMENTS) -> list[Sentence]:
    """The sentences of a text; of a long one, neighbours together, so that a person can go through them."""
    found = split_sentences(text)
    size = -(-len(found) // most) or 1
    return [Sentence(found[at].start, found[min(at + size, len(found)) - 1].end) for at in range(0, len(found), size)]


def group_portions(text: str, marks: Sequence[str]) -> list[Portion]:
    """Neighbouring segments of the same aspect as one portion each. `marks`: for each an aspect, or "" to trim it.

    ValueError unless there is a mark for every segment of the text.
    """
    cut = segment_text(text)
    places = zip(range(len(cut)), marks, strict=True)
    runs = [(aspect, [place for place, _mark in run]) for aspect, run in groupby(places, key=lambda one: one[1])]
    return [Portion(aspect, cut[run[0]].start, cut[run[-1]].end, run[0], run[-1]) for aspect, run in runs if aspect]
