"""TREC's XML, which often is none: records without a root, unclosed fields, bare ampersands. Pure.

A file is a sequence of `<doc>`, `<top>` or `<topic number="1">` records. Inside one, a known field
begins at its tag and ends at its closing tag or at the next known field; other tags inside a field
are dropped and their text stays.
"""

import html
import re
from collections.abc import Iterator

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats.files import MAX_LINE, FileSource

_TAG = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)|<(/?)([A-Za-z][\w.-]*)(?:\s[^<>]*)?/?>", re.DOTALL)
_NUL = re.compile(r"&#(?:0+|[xX]0+);")
_NO_CHARACTER = re.compile(r"&#(?:[0-9]{8}|[xX][0-9a-fA-F]{8})")  # No character has so long a number.
# Of topics, in TREC's years: 51 to 200 have <head>, <dom>, <smry>, <con>, <fac> with <nat> in it, and <def>.
_TOPIC = {"num", "number", "query", "title", "question", "summary", "description", "desc", "narrative", "narr"}
_TOPIC |= {"head", "dom", "smry", "con", "fac", "nat", "time", "def", "identifier", "id"}
_FIELDS = {
    "doc": {"docno", "docid", "id", "title", "headline", "text", "author", "bib", "date", "url"},
    "top": _TOPIC,
    "topic": _TOPIC,
}
# Which field of a topic is the query, the first that it has; "": the text of a topic without fields.
TOPIC_TEXTS = ("title", "query", "summary", "question", "description", "desc", "smry", "")
_RECORD = re.compile(rb"<(doc|topic|top)[\s>]", re.IGNORECASE)
_NUMBER = re.compile(r"""\s(?:number|num|id|qid)\s*=\s*["']([^"'<>]*)["']""", re.IGNORECASE)
MAX_RECORD = MAX_LINE  # Characters: a record that does not end by then is not one.
# Before a record there may be a DOCTYPE with declarations of its own, and comments, each over several lines.
_DECLARATION = re.compile(r"<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL | re.IGNORECASE)
_DECLARES = re.compile(r"<!--|<!DOCTYPE", re.IGNORECASE)
MAX_DECLARATION = 1 << 16  # Characters.


def find_record(source: FileSource, names: tuple[str, ...] = tuple(_FIELDS)) -> str:
    """Return which of these records stands first in a file; "" for none near its beginning."""
    found = (tag[1].decode().lower() for tag in _RECORD.finditer(source.head()))
    return next((name for name in found if name in names), "")


def read_elements(source: FileSource, record: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line, fields) of the records of this name. Raises BadInput for none, an open one, text between."""
    opening = re.compile(rf"<{record}(?:\s[^<>]*)?>", re.IGNORECASE)
    closing = re.compile(rf"</{record}\s*>", re.IGNORECASE)
    parts: list[str] = []
    attributes = ""
    start = size = found = 0
    declared = ""  # A declaration that goes on in the next line.
    for number, line in source.texts(blank=True):
        rest, at = line + "\n", 0
        if not start:
            rest, is_whole = _without_declarations(declared + rest, opening)
            declared = "" if is_whole or len(rest) > MAX_DECLARATION else rest
            if declared:
                continue
        while at < len(rest):
            edge = (closing if start else opening).search(rest, at)
            before = rest[at : edge.start() if edge else None]
            at = edge.end() if edge else len(rest)
            if start:
                parts.append(before)
                size += len(before)
                if size > MAX_RECORD:
                    said = _("a <%(tag)s> that does not end within %(most)s characters")
                    raise source.bad(start, said % {"tag": record, "most": MAX_RECORD})
            # Between records there may be a root's tags and an XML declaration, and nothing else.
            elif left := re.sub(r"<[?!/]?[A-Za-z][^<>]*>", "", before).strip():
                said = _("text outside of <%(tag)s>: %(text)r")
                raise source.bad(number, said % {"tag": record, "text": left[:40]})
            if edge and start:
                yield start, _parse_fields(source, start, "".join(parts), record, attributes)
                parts, start, size = [], 0, 0
            elif edge:
                start, found, attributes = number, found + 1, edge[0]
    if start:
        raise source.bad(start, _("a <%(tag)s> that does not end: </%(tag)s> is missing") % {"tag": record})
    if not found:
        raise BadInput(_("%(file)s: no <%(tag)s> in it") % {"file": source, "tag": record})


def _without_declarations(text: str, opening: re.Pattern[str]) -> tuple[str, bool]:
    """Return a text without the declarations before its first record, and False where one of them does not end."""
    left: list[str] = []
    at = 0
    record = opening.search(text)
    # By places, as a line of thousands of declarations would be copied for each of them.
    while begins := _DECLARES.search(text, at):
        if record and record.start() < at:
            record = opening.search(text, at)
        if record and record.start() < begins.start():
            break
        whole = _DECLARATION.match(text, begins.start())
        if not whole:
            return "".join(left) + text[at:], False
        left.append(text[at : whole.start()])
        at = whole.end()
    return "".join(left) + text[at:], True


def _parse_fields(source: FileSource, line: int, body: str, record: str, opening: str) -> dict[str, str]:
    if nul := _NUL.search(body):
        raise source.bad(line + body.count("\n", 0, nul.start()), _("a NUL character (&#0;); remove it"))
    whole = opening + body
    if wrong := _NO_CHARACTER.search(whole):
        at = line + whole.count("\n", 0, wrong.start())
        raise source.bad(at, _("a number of no character: %(text)s") % {"text": whole[wrong.start() :][:20]})
    known = _FIELDS[record]
    fields: dict[str, list[str]] = {}
    number = _NUMBER.search(opening) if record != "doc" else None
    if number:
        fields["num"] = [html.unescape(number[1])]
    if record == "topic" and not _TAG.search(body):
        fields[""] = [html.unescape(body)]
    current: str | None = None
    at = 0
    for tag in _TAG.finditer(body):
        if current:
            fields[current].append(html.unescape(body[at : tag.start()]))
        at = tag.end()
        if tag[3] is None:
            if current:
                fields[current].append(tag[1])
            continue
        name = tag[3].lower()
        if tag[2]:
            current = None if name == current else current
        # A known field ends the one before it, which TREC often leaves open; an unknown tag inside one is dropped.
        elif name in known or current is None:
            current = name
            fields.setdefault(name, []).append("\n" if name in fields else "")
    if current:
        fields[current].append(html.unescape(body[at:]))
    return {name: "".join(texts).strip() for name, texts in fields.items()}
