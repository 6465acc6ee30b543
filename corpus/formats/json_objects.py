"""Objects of a JSON file, one at a time, in any layout: JSON lines, a list, several lines per object. Pure."""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from django.utils.translation import gettext as _
from pydantic_core import from_json

from corpus.formats.files import MAX_LINE, FileSource

_SPACE = re.compile(r"[\s,]*")


def json_lines(source: FileSource) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, object) of JSON lines. Raises BadInput for anything else, and for NUL in an object."""
    for index, (number, line) in enumerate(source.lines()):
        row = json_object(source, number, line, is_first=not index)
        # PostgreSQL's text cannot contain NUL. Objects are searched only if the line may have one.
        if b"\\u0000" in line and _contains_nul(row):
            raise source.bad(number, _("a NUL character (\\u0000); remove it"))
        yield number, row


def json_object(source: FileSource, number: int, line: bytes, *, is_first: bool = False) -> dict[str, Any]:
    """Return the object of a line. Raises BadInput, which on the first line names the format of the file, if known."""
    try:
        # NaN is not JSON, and jsonb rejects it. Keys are cached, because they occur in every line.
        row = from_json(line, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        source.decode(number, line)  # Bytes that are not UTF-8 are the better explanation.
        column = re.search(r"column (\d+)", str(error))
        problem = _("not JSON, from character %(n)s on") % {"n": column[1] if column else 1}
    else:
        if isinstance(row, dict):
            return row
        problem = _("not a JSON object")
    raise source.bad(number, (source.foreign() if is_first else "") or problem)


def read_objects(source: FileSource) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, object) in any layout; for a list in one line, the number of the object. Raises BadInput."""
    # The first line of JSON lines is a complete object.
    _number, line = source.first()
    is_in_lines = line[:1] != b"[" and (line[-1:] not in (b"{", b"[", b",") or _is_whole(line))
    yield from json_lines(source) if is_in_lines else _Stream(source).read()


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(from_json(line), dict)
    except ValueError:
        return False


class _Stream:
    """A reader of JSON objects in any layout, with a piece of the file, or one larger object, in memory."""

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self.pieces = source.pieces()
        self.decoder = json.JSONDecoder(parse_constant=_refuse_constant)
        self.text, self.at, self.line = "", 0, 1
        self.number = 0  # Of the object.

    @property
    def position(self) -> int:
        """Return the current line, or the object's number where the file is one line."""
        return self.number if self.source.counts_objects else self.line

    def read(self) -> Iterator[tuple[int, dict[str, Any]]]:
        self._skip()
        is_list = self.text[self.at : self.at + 1] == "["
        self.at += is_list
        while True:
            self._skip()
            if self.at == len(self.text):
                break
            if is_list and self.text[self.at] == "]":
                self.at += 1
                self._skip()
                if self.at < len(self.text):
                    raise self.source.bad(self.position, _("text after the end of the JSON list; remove it"))
                return
            self.number += 1
            start = self.position
            yield start, self._next_object()
        if is_list:
            raise self.source.bad(self.position, _("the JSON ends in the middle; copy the file again"))

    def _skip(self) -> None:
        """Skip blanks and commas, and read more of the file where the text ends."""
        while True:
            match = _SPACE.match(self.text, self.at)
            self._go_to(match.end() if match else self.at)
            if self.at < len(self.text) or not self._read_more():
                return

    def _go_to(self, end: int) -> None:
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    def _read_more(self, least: int = 1) -> bool:
        """Append at least so many characters to the unread text; return False at the end of the file."""
        parts, size = [self.text[self.at :]], 0
        while size < least and (piece := next(self.pieces, None)) is not None:
            parts.append(piece)
            size += len(piece)
        self.text, self.at = "".join(parts), 0
        return size > 0

    def _next_object(self) -> dict[str, Any]:
        while True:
            try:
                row, end = self.decoder.raw_decode(self.text, self.at)
                break
            except (ValueError, RecursionError) as error:
                unread_count = len(self.text) - self.at
                offset = error.pos - self.at if isinstance(error, json.JSONDecodeError) else 0
                if unread_count > MAX_LINE:
                    message = _("an object that does not end within %(most)s MB; is it the right file?")
                    raise self.source.bad(self.position, message % {"most": MAX_LINE >> 20}) from None
                # Twice as much each time, so that a long object is not parsed too often.
                if isinstance(error, RecursionError) or not self._read_more(unread_count):
                    self._refuse(offset, is_open=str(error).startswith("Unterminated"))
        if not isinstance(row, dict):
            raise self.source.bad(self.position, _("not a JSON object"))
        source_text = self.text[self.at : end]
        if "\\u0000" in source_text and _contains_nul(row):
            raise self.source.bad(self.position, _("a NUL character (\\u0000); remove it"))
        # Half of a surrogate pair, which the library accepts and UTF-8 cannot represent.
        if ("\\ud" in source_text or "\\uD" in source_text) and not _is_whole(source_text.encode()):
            raise self.source.bad(self.position, _("half of a character (\\ud800 to \\udfff alone); remove it"))
        self._go_to(end)
        return row

    def _refuse(self, offset: int, *, is_open: bool) -> NoReturn:
        """Raise BadInput for the object that begins here and is invalid from character `offset` on."""
        unread_text = self.text[self.at :]
        line = self.number if self.source.counts_objects else self.line + unread_text.count("\n", 0, offset)
        if is_open or len(unread_text.rstrip()) <= offset:
            raise self.source.bad(line, _("the JSON ends in the middle; copy the file again"))
        line_end = self.text.rfind("\n", 0, self.at + offset)
        raise self.source.bad(line, _("not JSON, from character %(n)s on") % {"n": self.at + offset - line_end})


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _contains_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_contains_nul(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(_contains_nul(part) for part in value)
