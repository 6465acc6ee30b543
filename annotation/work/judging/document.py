"""A document's text as HTML: quotations marked, code in monospace, Markdown and HTML formatted.

The HTML contains all characters of the text in order, those that only format it in hidden elements.
So a position in the text is the same on the page, in quotations and in judgments. In plain text and
Markdown, HTML, links and images of the document are shown as text; of a document that was imported as
HTML, the elements of corpus.formats.html_documents are written around its text.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise, zip_longest
from typing import Any

import pyromark
from django.http import HttpResponse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from annotation.work.judging.debates import DebateText, Span

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
# In plain text: blocks between empty lines, lines that look like code, and gaps in tables drawn with spaces.
_BLOCK = re.compile(r"(?:^[^\n]*\S[^\n]*(?:\n|\Z))+", re.MULTILINE)
# Each pattern reads a text once, also one that is written to slow it down (ADR 0024).
_FENCE = re.compile(r"^(```|~~~)([^\n]*)(?:\n|\Z)", re.MULTILINE)
_CODE_LINE = re.compile(r"^(?: {4}|\t)|[{};]\s*$|^\s*(?:>>>|\.\.\.|\$|#include) ")
_GAP = re.compile(r"(?<=\S) {3,}(?=\S)")
_PROMPT = re.compile(r"\s*(?:>>>|\$) ")
_INLINE_CODE = re.compile(r"`[^`\n]{1,200}`")


def document_html(text: str, spans: Sequence[Span] = (), *, form: str = "text", source: str = "") -> SafeString:
    """Return the text as HTML with the quotations of a debate marked.

    `form`: text, markdown or html; `source`: the HTML of which it is the text.
    """
    writer = _Writer(text, spans)
    if source and (parts := _read_parts(source, text)) is not None:
        for part in parts:
            if isinstance(part, str):
                writer.parts.append(part)
            else:
                writer.write(*part)
        writer.hide(len(text))
    elif form == "markdown":
        _write_markdown(writer, text)
    else:
        for start, end, (opens, closes) in _code_regions(text):
            writer.write(writer.at, start)
            writer.parts.append(opens)
            writer.write(start, end)
            writer.parts.append(closes)
        writer.write(writer.at, len(text))
    return mark_safe(
        "".join(writer.parts)
    )  # every text in it went through escape(), every element is written here or there


def allow_images(response: HttpResponse, form: str) -> HttpResponse:
    """Let a page of HTML documents draw the images that they hold as data, and load none from elsewhere."""
    if form == "html":
        response._csp_update = {"img-src": ["data:"]}  # type: ignore[attr-defined]  # as django-csp's csp_update
    return response


def formatted_answers(
    answers: Iterable[DebateText], sources: Sequence[str], form: str
) -> list[tuple[DebateText, SafeString | str]]:
    """Return a query's answers with their HTML; "" for those that are shown as they are written."""
    return [
        (answer, document_html(answer.text, form=form, source=source) if source or form == "markdown" else "")
        for answer, source in zip_longest(answers, sources, fillvalue="")
        if not isinstance(answer, str)
    ]


def _read_parts(source: str, text: str) -> Sequence[str | tuple[int, int]] | None:
    """Return the parts of an HTML source, as long as it still reads as the text that was judged; else None."""
    # Loaded on first use: few pages need a parser.
    from corpus.formats.html_documents import read_html

    page = read_html(source)
    return page.parts if page.text == text else None


class _Writer:
    """Parts of the HTML so far, and the position in the text that they reach."""

    def __init__(self, text: str, spans: Sequence[Span]) -> None:
        self.text, self.at = text, 0
        self.parts: list[str] = []
        self._labelled = {span.label: span for span in spans}
        self._tagged: set[str] = set()
        self._pieces = cut_pieces(len(text), [(span.start, span.end, span.label) for span in spans])
        self._starts = [start for start, _end, _labels in self._pieces]

    def write(self, start: int, end: int) -> None:
        """Write characters, marked where they are quoted; the formatting characters before them are hidden."""
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
        """Write the characters up to `until` in a hidden element."""
        if self.at < until:
            self.parts.append(f'<span class="syntax">{escape(self.text[self.at : until])}</span>')
            self.at = until

    def _tag(self, label: str) -> str:
        side = self._labelled[label].side
        words = _("%(label)s, quoted for") if side == "for" else _("%(label)s, quoted against")
        named = escape(words % {"label": label})
        return f'<a class="tag tag-{side}" id="quote-{label}" href="#by-{label}" aria-label="{named}">{label}</a>'


def cut_pieces(length: int, marks: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, tuple[str, ...]]]:
    """Cut a text of `length` characters wherever a mark (start, end, name) begins or ends, into (start, end, names).

    The pieces cover the text once, in order and without gaps. Overlapping marks share pieces, so no
    element is nested in another. Marks are clipped to the text, and empty ones left out.
    """
    clipped = [(max(0, start), min(length, end), name) for start, end, name in marks]
    nonempty_marks = [mark for mark in clipped if mark[0] < mark[1]]
    edges = sorted({0, length, *(start for start, _, _ in nonempty_marks), *(end for _, end, _ in nonempty_marks)})
    return [
        (begin, until, tuple(name for start, end, name in nonempty_marks if start <= begin and until <= end))
        for begin, until in pairwise(edges)
    ]


def _code_regions(text: str) -> Iterator[tuple[int, int, tuple[str, str]]]:
    """Yield start, end and element of the code in plain text, in order: whole blocks, and text between backticks."""
    fenced = list(_fenced_blocks(text)) if "```" in text or "~~~" in text else []
    # A block that begins with a fence ends at the closing fence and not at an empty line. Other blocks
    # inside fences are dropped below, because they begin before the fence has ended.
    fence_starts = {start for start, _end in fenced}
    plain = (block for block in _BLOCK.finditer(text) if block.start() not in fence_starts)
    blocks = [*fenced, *(block.span() for block in plain if _looks_like_code(block.group()))]
    inline = [match.span() for match in _INLINE_CODE.finditer(text)] if "`" in text else []
    kinds = {True: ('<span class="code">', "</span>"), False: ("<code>", "</code>")}
    at = 0
    for start, end, whole in sorted([(*span, True) for span in blocks] + [(*span, False) for span in inline]):
        if start >= at:
            yield start, end, kinds[whole]
            at = end


def _fenced_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each block between two fences of the same kind, including the fences."""
    fences = [(match.start(), match.end(), match[1], not match[2].strip(" \t")) for match in _FENCE.finditer(text)]
    # A fence that is never closed opens no block, or the rest of the text would be code.
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
    # Two gaps or more in a line: a table with three columns, drawn with spaces.
    code_lines = sum(bool(_CODE_LINE.search(line)) or len(list(islice(_GAP.finditer(line), 2))) == 2 for line in lines)
    return code_lines * 2 >= len(lines) if len(lines) > 1 else bool(_PROMPT.match(block))


def _write_markdown(writer: _Writer, text: str) -> None:
    """Write the elements of the parser's events around the text of the source, with formatting characters hidden."""
    # Byte offsets of the characters, because the parser's positions count bytes.
    offsets = None if text.isascii() else [0, *accumulate(len(character.encode()) for character in text)]
    closing: list[str] = []
    cell = "td"
    for event, span in _MARKDOWN.events_with_range(text):
        start, end = span["start"], span["end"]
        if offsets is not None:
            start, end = bisect_left(offsets, start), bisect_left(offsets, end)
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
            # An entity: its characters stay in the HTML, and the style sheet draws the character that it means.
            writer.parts.append(f'<span class="entity" data-as="{escape(value)}">')
            writer.write(start, end)
            writer.parts.append("</span>")
        else:
            writer.write(start, end)
    writer.hide(len(text))


def _name_of(event: Any) -> tuple[str, Any]:
    """Return the name of an event or element, and its value."""
    return (event, None) if isinstance(event, str) else next(iter(event.items()))
