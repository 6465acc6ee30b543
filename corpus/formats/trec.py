"""TREC's XML, which is often not well-formed: records without a root, unclosed fields, bare ampersands. Pure.

A file is a sequence of `<doc>`, `<top>` or `<topic number="1">` records. In a record, a known field
begins at its tag and ends at its closing tag or at the next known field; other tags inside a field
are dropped, and their text stays.
"""

import html
import re
from collections.abc import Iterator

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats.files import MAX_LINE, FileSource

_TAG = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)|<(/?)([A-Za-z][\w.-]*)(?:\s[^<>]*)?/?>", re.DOTALL)
_NUL = re.compile(r"&#(?:0+|[xX]0+);")
_NO_CHARACTER = re.compile(r"&#(?:[0-9]{8}|[xX][0-9a-fA-F]{8})")  # No character has a number of so many digits.
# Fields of topics over the years of TREC: 51 to 200 have <head>, <dom>, <smry>, <con>, <fac> with <nat>, and <def>.
_TOPIC = {"num", "number", "query", "title", "question", "summary", "description", "desc", "narrative", "narr"}
_TOPIC |= {"head", "dom", "smry", "con", "fac", "nat", "time", "def", "identifier", "id"}
_FIELDS = {
    "doc": {"docno", "docid", "id", "title", "headline", "text", "author", "bib", "date", "url"},
    "top": _TOPIC,
    "topic": _TOPIC,
}
# The first of these fields in a topic is the query; "": the text of a topic without fields.
TOPIC_TEXTS = ("title", "query", "summary", "question", "description", "desc", "smry", "")
_RECORD = re.compile(rb"<(doc|topic|top)[\s>]", re.IGNORECASE)
_NUMBER = re.compile(r"""\s(?:number|num|id|qid)\s*=\s*["']([^"'<>]*)["']""", re.IGNORECASE)
MAX_RECORD = MAX_LINE  # The most characters in a record.
# Before a record there may be a DOCTYPE with declarations, and comments, which may span several lines.
_DECLARATION = re.compile(r"<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL | re.IGNORECASE)
_DECLARES = re.compile(r"<!--|<!DOCTYPE", re.IGNORECASE)
MAX_DECLARATION = 1 << 16  # The most characters in a declaration.


def find_record(source: FileSource, names: tuple[str, ...] = tuple(_FIELDS)) -> str:
    """Return the name of the first record in a file; "" for none of these near its beginning."""
    record_names = (tag[1].decode().lower() for tag in _RECORD.finditer(source.head()))
    return next((name for name in record_names if name in names), "")


def read_elements(source: FileSource, record: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line, fields) of the records of this name. Raises BadInput for none, an open record, or text between."""
    opening = re.compile(rf"<{record}(?:\s[^<>]*)?>", re.IGNORECASE)
    closing = re.compile(rf"</{record}\s*>", re.IGNORECASE)
    parts: list[str] = []
    attributes = ""
    start = size = record_count = 0
    open_declaration = ""  # A declaration that continues on the next line.
    for number, line in source.texts(blank=True):
        text, position = line + "\n", 0
        if not start:
            text, is_whole = _without_declarations(open_declaration + text, opening)
            open_declaration = "" if is_whole or len(text) > MAX_DECLARATION else text
            if open_declaration:
                continue
        while position < len(text):
            tag = (closing if start else opening).search(text, position)
            content = text[position : tag.start() if tag else None]
            position = tag.end() if tag else len(text)
            if start:
                parts.append(content)
                size += len(content)
                if size > MAX_RECORD:
                    message = _("a <%(tag)s> that does not end within %(most)s characters")
                    raise source.bad(start, message % {"tag": record, "most": MAX_RECORD})
            # Between records only the tags of a root and an XML declaration are allowed.
            elif text_between := re.sub(r"<[?!/]?[A-Za-z][^<>]*>", "", content).strip():
                message = _("text outside of <%(tag)s>: %(text)r")
                raise source.bad(number, message % {"tag": record, "text": text_between[:40]})
            if tag and start:
                yield start, _parse_fields(source, start, "".join(parts), record, attributes)
                parts, start, size = [], 0, 0
            elif tag:
                start, record_count, attributes = number, record_count + 1, tag[0]
    if start:
        raise source.bad(start, _("a <%(tag)s> that does not end: </%(tag)s> is missing") % {"tag": record})
    if not record_count:
        raise BadInput(_("%(file)s: no <%(tag)s> in it") % {"file": source, "tag": record})


def _without_declarations(text: str, opening: re.Pattern[str]) -> tuple[str, bool]:
    """Return a text without the declarations before its first record, and whether all of them end."""
    parts: list[str] = []
    position = 0
    record = opening.search(text)
    # By positions, because copying the text for each of thousands of declarations would be slow.
    while declaration_start := _DECLARES.search(text, position):
        if record and record.start() < position:
            record = opening.search(text, position)
        if record and record.start() < declaration_start.start():
            break
        declaration = _DECLARATION.match(text, declaration_start.start())
        if not declaration:
            return "".join(parts) + text[position:], False
        parts.append(text[position : declaration.start()])
        position = declaration.end()
    return "".join(parts) + text[position:], True


def _parse_fields(source: FileSource, line: int, body: str, record: str, opening: str) -> dict[str, str]:
    if nul_reference := _NUL.search(body):
        raise source.bad(line + body.count("\n", 0, nul_reference.start()), _("a NUL character (&#0;); remove it"))
    element = opening + body
    if invalid_reference := _NO_CHARACTER.search(element):
        start = invalid_reference.start()
        problem = _("a number of no character: %(text)s") % {"text": element[start : start + 20]}
        raise source.bad(line + element.count("\n", 0, start), problem)
    field_names = _FIELDS[record]
    fields: dict[str, list[str]] = {}
    number = _NUMBER.search(opening) if record != "doc" else None
    if number:
        fields["num"] = [html.unescape(number[1])]
    if record == "topic" and not _TAG.search(body):
        fields[""] = [html.unescape(body)]
    current: str | None = None
    position = 0
    for tag in _TAG.finditer(body):
        if current:
            fields[current].append(html.unescape(body[position : tag.start()]))
        position = tag.end()
        if tag[3] is None:
            if current:
                fields[current].append(tag[1])
            continue
        name = tag[3].lower()
        if tag[2]:
            current = None if name == current else current
        # A known field ends the one before it, which TREC often leaves open; unknown tags in a field are dropped.
        elif name in field_names or current is None:
            current = name
            fields.setdefault(name, []).append("\n" if name in fields else "")
    if current:
        fields[current].append(html.unescape(body[position:]))
    return {name: "".join(texts).strip() for name, texts in fields.items()}
