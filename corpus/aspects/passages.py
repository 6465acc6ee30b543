"""Texts of passages: their sources, which are contiguous, how they are joined and cut. Pure.

BRIGHT-Pro 3.3: contiguous or overlapping passages of one source that support the same aspect are
merged into one; a text that covers several aspects is cut, so that each portion belongs to a single
aspect; unrelated text is trimmed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import Any

from corpus.search.text import Sentence, split_sentences

_CHUNK = re.compile(r"(.+)[_#.:/-]([0-9]{1,6})")
# The fewest characters that the end of a passage and the beginning of the next share where they overlap.
OVERLAP = 20
SEGMENTS = 200  # The most segments of a text that a person assigns to aspects.


@dataclass(frozen=True, slots=True)
class AspectPassage:
    """The parts of a document that joining needs: its text and the source of the text."""

    id: str
    title: str
    text: str
    source: str
    first: int | None  # The first and last chunk of the source in the text; None if unknown.
    last: int | None


def source_of(id: str, metadata: Mapping[str, Any]) -> tuple[str, int | None, int | None]:
    """Return source, first and last chunk (None: unknown), from the metadata, or from the number in the id."""
    source = metadata.get("source")
    chunks = metadata.get("chunks")
    first, last = chunks if isinstance(chunks, list) and len(chunks) == 2 else (None, None)
    if isinstance(source, Mapping) and (name := source.get("url") or source.get("document") or source.get("file")):
        return str(name), first, last
    match = _CHUNK.fullmatch(id)
    number = int(match[2]) if match else None
    if first is None:
        first = last = number
    address = source if isinstance(source, str) and source else metadata.get("url")
    return str(address or (match[1] if match else id)), first, last


def overlap_length(before: str, after: str) -> int:
    """Return the length of the end of `before` with which `after` begins; 0 below OVERLAP."""
    longest = min(len(before), len(after))
    for start in range(len(before) - longest, len(before) - OVERLAP + 1):
        # The short comparison first, because comparing the whole end at each position would be slow.
        if after.startswith(before[start : start + OVERLAP]) and after.startswith(before[start:]):
            return len(before) - start
    return 0


def in_order(passages: Sequence[AspectPassage]) -> list[AspectPassage]:
    """Sort passages by chunk; passages without a number keep their order."""
    return sorted(passages, key=lambda passage: passage.first or 0)


def find_gaps(passages: Sequence[AspectPassage]) -> list[tuple[str, str]]:
    """Return the ids of neighbours with a gap between them. Unknown chunks count as adjacent."""
    return [
        (passage.id, neighbour.id)
        for passage, neighbour in pairwise(passages)
        if passage.last is not None
        and neighbour.first is not None
        and neighbour.first > passage.last + 1
        and not overlap_length(passage.text, neighbour.text)
    ]


def join_texts(passages: Sequence[AspectPassage]) -> str:
    """Join the texts in their order, without repeating the overlap of two neighbours."""
    text = passages[0].text
    for passage in passages[1:]:
        shared = overlap_length(text, passage.text)
        text = text + passage.text[shared:] if shared else f"{text.rstrip()}\n\n{passage.text.lstrip()}"
    return text


def joinable_groups(passages: Sequence[AspectPassage]) -> list[list[AspectPassage]]:
    """Return the groups of two or more contiguous passages of one source, which can be joined."""
    groups = []
    ordered = sorted(passages, key=lambda passage: (passage.source, passage.first or 0))
    for _name, source_passages in groupby(ordered, key=attrgetter("source")):
        group: list[AspectPassage] = []
        for passage in source_passages:
            if group and find_gaps([group[-1], passage]):
                groups.append(group)
                group = []
            group.append(passage)
        groups.append(group)
    return [group for group in groups if len(group) > 1]


def segment_text(text: str, limit: int = SEGMENTS) -> list[Sentence]:
    """Split a text into sentences, or a long one into at most `limit` segments of several sentences."""
    sentences = split_sentences(text)
    size = -(-len(sentences) // limit) or 1  # Rounded up.
    return [
        Sentence(sentences[start].start, sentences[min(start + size, len(sentences)) - 1].end)
        for start in range(0, len(sentences), size)
    ]


def group_portions(text: str, marks: Sequence[str]) -> list[tuple[str, Sentence, list[int]]]:
    """Join neighbouring segments of one aspect: (aspect, characters, [first, last] segment counted from 0).

    `marks` has an aspect for each segment, or "" to trim it. Raises ValueError unless there is one for every segment.
    """
    segments = segment_text(text)
    marked = zip(range(len(segments)), marks, strict=True)
    runs = [(aspect, [index for index, _mark in run]) for aspect, run in groupby(marked, key=itemgetter(1))]
    return [
        (aspect, Sentence(segments[run[0]].start, segments[run[-1]].end), [run[0], run[-1]])
        for aspect, run in runs
        if aspect
    ]
