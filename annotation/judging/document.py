"""A document's text as HTML: quotes marked, code in monospace, Markdown formatted where the collection says so.

All characters of the text stand in the HTML, in order, what only formats it in hidden elements: so
a place in the text is the same on the page, in quotes and in judgments. Nothing of the document's
own HTML, links or images passes.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from typing import Any

import pyromark
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from annotation.judging.debates import Span

_MARKDOWN = pyromark.Markdown(options=pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH)
_ELEMENTS = {
    "Paragraph": ("<p>", "</p>"),
    "HtmlBlock": ("<p>", "</p>"),
    "BlockQuote": ("<blockquote>", "</blockquote>"),
    "CodeBlock": ("<pre><code>", "</code></pre>"),
    "Item": ("<li>", "</li>"),
    "Emphasis": ("<em>", "</em>"),
    "Strong": ("<strong>", "</strong>"),
    "Strikethrough": ("<del>", "</del>"),
    "Link": ('<span class="link">', "</span>"),
    "Image": ('<span class="image">', "</span>"),
    "Table": ("<table>", "</table>"),
    "TableHead": ("<thead><tr>", "</tr></thead>"),
    "TableRow": ("<tr>", "</tr>"),
}
# Plain text: blocks between empty lines, and what looks like a line of code or of a table drawn with spaces.
_BLOCK = re.compile(r"(?:^[^\n]*\S[^\n]*(?:\n|\Z))+", re.MULTILINE)
# Hostile documents meet these patterns: none may go over a text more than once (ADR 0024).
_FENCE = re.compile(r"^(```|~~~)([^\n]*)(?:\n|\Z)", re.MULTILINE)
_CODE_LINE = re.compile(r"^(?: {4}|\t)|[{};]\s*$|^\s*(?:>>>|\.\.\.|\$|#include) ")
_GAP = re.compile(r"(?<=\S) {3,}(?=\S)")
_PROMPT = re.compile(r"\s*(?:>>>|\$) ")
_INLINE_CODE = re.compile(r"`[^`\n]{1,200}`")


def document_html(text: str, spans: Sequence[Span] = (), *, markdown: bool = False) -> SafeString:
    """Return the text as HTML with the quotes of a debate marked in it."""
    writer = _Writer(text, spans)
    if markdown:
        _write_markdown(writer, text)
    else:
        for start, end, (opens, closes) in _code_regions(text):
            writer.write(writer.at, start)
            writer.parts.append(opens)
            writer.write(start, end)
            writer.parts.append(closes)
        writer.write(writer.at, len(text))
    return mark_safe("".join(writer.parts))  # every text in it went through escape()


class _Writer:
    """Parts of the HTML, and how far in the text they reach."""

    def __init__(self, text: str, spans: Sequence[Span]) -> None:
        self.text, self.at = text, 0
        self.parts: list[str] = []
        self._labelled = {span.label: span for span in spans}
        self._tagged: set[str] = set()
        self._pieces = cut_pieces(len(text), [(span.start, span.end, span.label) for span in spans])
        self._starts = [start for start, _end, _labels in self._pieces]

    def write(self, start: int, end: int) -> None:
        """Write characters to read, marked where they are quoted; those before them that only format are hidden."""
        self.hide(start)
        at = self.at
        for piece in self._pieces[max(0, bisect_right(self._starts, at) - 1) :]:
            if piece[0] >= end:
                break
            if piece[1] <= at:
                continue
            text, labels = escape(self.text[max(at, piece[0]) : min(end, piece[1])]), piece[2]
            if not labels:
                self.parts.append(text)
                continue
            sides = {self._labelled[label].side for label in labels}
            tags = "".join(self._tag(label) for label in labels if label not in self._tagged)
            self._tagged.update(labels)
            name = "both" if len(sides) > 1 else sides.pop()
            self.parts.append(f'<mark class="{name}" data-quotes="{" ".join(labels)}">{tags}{text}</mark>')
        self.at = max(at, end)

    def hide(self, until: int) -> None:
        """Write the characters up to `until` in an element that is not drawn."""
        if self.at < until:
            self.parts.append(f'<span class="syntax">{escape(self.text[self.at : until])}</span>')
            self.at = until

    def _tag(self, label: str) -> str:
        side = self._labelled[label].side
        words = _("%(label)s, quoted for") if side == "for" else _("%(label)s, quoted against")
        named = escape(words % {"label": label})
        return f'<a class="tag tag-{side}" id="quote-{label}" href="#by-{label}" aria-label="{named}">{label}</a>'


def cut_pieces(length: int, marks: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, tuple[str, ...]]]:
    """Cut a text of `length` characters wherever a mark (start, end, name) begins or ends: start, end, names.

    The pieces cover the text once, in order, without gaps; overlapping marks share pieces, so
    nothing is ever nested. Marks that are empty or lie outside are clipped or left out.
    """
    clipped = [(max(0, start), min(length, end), name) for start, end, name in marks]
    kept = [mark for mark in clipped if mark[0] < mark[1]]
    edges = sorted({0, length, *(start for start, _, _ in kept), *(end for _, end, _ in kept)})
    return [
        (here, there, tuple(name for start, end, name in kept if start <= here and there <= end))
        for here, there in pairwise(edges)
    ]


def _code_regions(text: str) -> Iterator[tuple[int, int, tuple[str, str]]]:
    """Yield where plain text is code, in order and apart: whole blocks, and what stands between two backticks."""
    fenced = list(_fenced_blocks(text)) if "```" in text or "~~~" in text else []
    # A block that begins with a fence may end before it, at an empty line: the fence says where the
    # code ends. Other blocks inside fences are dropped below, since they begin before the fence has
    # ended.
    begun = {start for start, _end in fenced}
    plain = (found for found in _BLOCK.finditer(text) if found.start() not in begun)
    blocks = [*fenced, *(found.span() for found in plain if _looks_like_code(found.group()))]
    inline = [found.span() for found in _INLINE_CODE.finditer(text)] if "`" in text else []
    kinds = {True: ('<span class="code">', "</span>"), False: ("<code>", "</code>")}
    at = 0
    for start, end, whole in sorted([(*span, True) for span in blocks] + [(*span, False) for span in inline]):
        if start >= at:
            yield start, end, kinds[whole]
            at = end


def _fenced_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where blocks between two fences of one kind begin and end, their fences included."""
    fences = [(found.start(), found.end(), found[1], not found[2].strip(" \t")) for found in _FENCE.finditer(text)]
    # A fence without one that closes it opens nothing, or the rest of the text would be code.
    last = {mark: start for start, _end, mark, closes in fences if closes}
    begin, open_mark = 0, ""
    for start, end, mark, closes in fences:
        if not open_mark and start < last.get(mark, -1):
            begin, open_mark = start, mark
        elif closes and mark == open_mark:
            yield begin, end
            open_mark = ""


def _looks_like_code(block: str) -> bool:
    lines = block.splitlines()
    # Three columns at least are a table that is drawn with spaces.
    alike = sum(bool(_CODE_LINE.search(line)) or len(list(islice(_GAP.finditer(line), 2))) == 2 for line in lines)
    return alike * 2 >= len(lines) if len(lines) > 1 else bool(_PROMPT.match(block))


def _write_markdown(writer: _Writer, text: str) -> None:
    """Follow the parser's events: the text as the source has it, elements around it, what only formats it hidden."""
    # From places in the text's bytes, which the parser counts, to places in its characters.
    begins = None if text.isascii() else [0, *accumulate(len(character.encode()) for character in text)]
    closing: list[str] = []
    cell = "td"
    for event, span in _MARKDOWN.events_with_range(text):
        start, end = span["start"], span["end"]
        if begins is not None:
            start, end = bisect_left(begins, start), bisect_left(begins, end)
        kind, value = _name_of(event)
        if kind == "Start":
            name, detail = _name_of(value)
            cell = {"TableHead": "th", "TableRow": "td"}.get(name, cell)
            if name == "Heading":
                opens, closes = f'<h3 class="level-{detail["level"][1:]}">', "</h3>"
            elif name == "List":
                opens, closes = ("<ul>", "</ul>") if detail is None else (f'<ol start="{int(detail)}">', "</ol>")
            else:
                opens, closes = (f"<{cell}>", f"</{cell}>") if name == "TableCell" else _ELEMENTS[name]
            writer.parts.append(opens)
            closing.append(closes)
        elif kind == "End":
            writer.parts.append(closing.pop())
        elif kind in ("HardBreak", "Rule"):
            writer.hide(end)
            writer.parts.append("<br>" if kind == "HardBreak" else "<hr>")
        elif kind == "Code":
            ticks = (end - start - len(text[start:end].strip("`"))) // 2
            writer.parts.append("<code>")
            writer.write(start + ticks, end - ticks)
            writer.hide(end)
            writer.parts.append("</code>")
        elif kind == "Text" and text[start] == "&" and value != text[start:end]:
            # An entity: its characters stay, and the style sheet draws what it stands for.
            writer.parts.append(f'<span class="entity" data-as="{escape(value)}">')
            writer.write(start, end)
            writer.parts.append("</span>")
        else:
            writer.write(start, end)
    writer.hide(len(text))


def _name_of(event: Any) -> tuple[str, Any]:
    """The name of an event or element, and what belongs to it."""
    return (event, None) if isinstance(event, str) else next(iter(event.items()))
