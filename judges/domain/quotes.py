"""Where a quoted sentence stands in the document, checked verbatim, and the marks that show it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from judges.records import Quote

MARKS = "\"'`´“”„‟«»‹›‘’‚‛「」『』〝〞＂＇"
"""Quotation marks and apostrophes: models change one for another, so any of them stands for any."""
_MARK = f"[{re.escape(MARKS)}]"


def locate(text: str, document: str) -> Quote:
    """The quote with its first place in `document` (characters, end exclusive), or without one.

    The exact text is looked for first, then the same characters with white space of any kind and length between
    words and any quotation mark for another, because models unwrap lines and straighten quotes. Nothing else is
    forgiven: another word, case or punctuation is not a quote.
    """
    words = text.split()
    if not words:
        return Quote(text)
    start = document.find(text)
    if start >= 0:
        return Quote(text, start, start + len(text))
    found = re.search(r"\s+".join(map(_tolerant, words)), document)
    return Quote(text, found.start(), found.end()) if found else Quote(text)


def _tolerant(word: str) -> str:
    return "".join(_MARK if letter in MARKS else re.escape(letter) for letter in word)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the document, and the names of the marks that cover all of it."""

    start: int
    end: int
    marks: tuple[str, ...] = ()


def pieces(length: int, marks: Iterable[tuple[int, int, str]]) -> Sequence[Piece]:
    """A text of `length` characters cut wherever a mark (start, end, name) begins or ends.

    The pieces cover the text once, in order, without gaps; overlapping marks share pieces, so nothing is ever nested.
    Marks that are empty or lie outside are clipped or left out.
    """
    clipped = [(max(0, start), min(length, end), name) for start, end, name in marks]
    kept = [mark for mark in clipped if mark[0] < mark[1]]
    edges = sorted({0, length, *(start for start, _, _ in kept), *(end for _, end, _ in kept)})
    return [
        Piece(here, there, tuple(name for start, end, name in kept if start <= here and there <= end))
        for here, there in pairwise(edges)
    ]
