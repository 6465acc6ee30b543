"""Quoted sentences of both sides marked in a document, overlapping or not. Pure, and safe HTML only."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from django.utils.translation import get_language, get_language_bidi
from django.utils.translation import gettext as _

from judges.quotes import pieces


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of the document, quoted by `side` ("for" or "against") under `label` (F1, A2)."""

    start: int
    end: int
    side: str
    label: str


def marked(text: str, spans: Sequence[Span]) -> str:
    """The text as HTML: every character escaped, quoted stretches in <mark>, each span's label where it begins.

    Labels are links to the turn that quotes (#by-F1), and the target of its link back (#quote-F1).
    """
    by_label = {span.label: span for span in spans}
    cut = pieces(len(text), [(span.start, span.end, span.label) for span in spans])
    return "".join(
        _piece(text[piece.start : piece.end], piece.start, [by_label[m] for m in piece.marks]) for piece in cut
    )


def quote(text: str, label: str, side: str, *, first: bool) -> str:
    """A quote under a turn as a list item: a link to its place in the document, or struck out without a label.

    `first`: the document's label links back to this one.
    """
    if not label:
        ours = f'lang="{get_language()}" dir="{"rtl" if get_language_bidi() else "ltr"}"'
        missing = f"<s>{escape(text)}</s> <em {ours}>{_('not in the document')}</em>"
        return f'<li><span class="missing">{missing}</span></li>'
    target = f' id="by-{label}"' if first else ""
    tag = f'<span class="tag tag-{side}">{label}</span>'
    return f'<li><a href="#quote-{label}"{target}>{tag} <q>{escape(text)}</q></a></li>'


def _piece(text: str, start: int, spans: Sequence[Span]) -> str:
    if not spans:
        return escape(text)
    sides = " ".join(sorted({span.side for span in spans}))
    labels = " ".join(span.label for span in spans)
    tags = "".join(_tag(span) for span in spans if span.start == start)
    return f'<mark class="{sides}" data-quotes="{labels}">{tags}{escape(text)}</mark>'


def _tag(span: Span) -> str:
    spoken = _("%(label)s, quoted for") if span.side == "for" else _("%(label)s, quoted against")
    return (
        f'<a class="tag tag-{span.side}" id="quote-{span.label}" href="#by-{span.label}" '
        f'aria-label="{escape(spoken % {"label": span.label})}">{span.label}</a>'
    )
