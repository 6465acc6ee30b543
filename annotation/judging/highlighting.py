"""Quoted sentences of both sides marked in a document, overlapping or not. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from judges.domain.quotes import pieces


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of the document, quoted by `side` ("for" or "against") under `label` (F1, A2)."""

    start: int
    end: int
    side: str
    label: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the document's text, and the quotes that cover all of it."""

    text: str
    sides: str = ""
    """Who quotes it, in the alphabet's order: "", "for", "against" or "against for"."""
    labels: str = ""
    begins: tuple[Span, ...] = ()
    """The quotes that begin here."""


def highlight(text: str, spans: Sequence[Span]) -> list[Stretch]:
    """Cut the text wherever a quote begins or ends: the stretches cover it once, in order, without gaps."""
    by_label = {span.label: span for span in spans}
    cut = pieces(len(text), [(span.start, span.end, span.label) for span in spans])
    return [_stretch(text[one.start : one.end], one.start, [by_label[name] for name in one.marks]) for one in cut]


def _stretch(text: str, start: int, spans: Sequence[Span]) -> Stretch:
    sides = " ".join(sorted({span.side for span in spans}))
    labels = " ".join(span.label for span in spans)
    return Stretch(text, sides, labels, tuple(span for span in spans if span.start == start))
