"""Objects of a JSON file, one at a time: JSON lines, a list, several lines. Pure."""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from django.utils.translation import gettext as _
from pydantic_core import from_json

from corpus.formats.files import MAX_LINE, FileSource

_SPACE = re.compile(r"[\s,]*")


def json_lines(source: FileSource) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, object). BadInput for all else, and for NUL in an object."""
    for place, (number, line) in enumerate(source.lines()):
        row = json_object(source, number, line, is_first=not place)
        # PostgreSQL's text cannot hold NUL. Objects are walked only where the line may have one.
        if b"\\u0000" in line and _holds_nul(row):
            raise source.bad(number, _("a NUL character (\\u0000); remove it"))
        yield number, row


def json_object(source: FileSource, number: int, line: bytes, *, is_first: bool = False) -> dict[str, Any]:
    """Return the object of a line. Raises BadInput, which says of the first line whose JSON the file is, if known."""
    try:
        # NaN is no JSON, and jsonb refuses it. Keys repeat in every line and are kept; a cache of
        # texts would only cost memory.
        row = from_json(line, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        source.decode(number, line)  # bytes that are not UTF-8 are the better explanation
        column = re.search(r"column (\d+)", str(error))
        problem = _("not JSON, from character %(n)s on") % {"n": column[1] if column else 1}
    else:
        if isinstance(row, dict):
            return row
        problem = _("not a JSON object")
    raise source.bad(number, (source.foreign() if is_first else "") or problem)


def read_objects(source: FileSource) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, or number in a list of one line; object) of each object in any layout. Raises BadInput."""
    # JSON lines are no list, and the first line is a whole object.
    _number, line = source.first()
    is_in_lines = line[:1] != b"[" and (line[-1:] not in (b"{", b"[", b",") or _is_whole(line))
    yield from json_lines(source) if is_in_lines else _Stream(source).read()


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(from_json(line), dict)
    except ValueError:
        return False


class _Stream:
    """A reader of JSON objects in any layout. Memory holds a piece of the file, or one object where that is larger."""

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self.pieces = source.pieces()
        self.decoder = json.JSONDecoder(parse_constant=_refuse_constant)
        self.text, self.at, self.line = "", 0, 1
        self.number = 0  # Of the object.

    @property
    def place(self) -> int:
        """The line reached, or the object's number where the file is one line."""
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
                    raise self.source.bad(self.place, _("text after the end of the JSON list; remove it"))
                return
            self.number += 1
            began = self.place
            yield began, self._next_object()
        if is_list:
            raise self.source.bad(self.place, _("the JSON ends in the middle; copy the file again"))

    def _skip(self) -> None:
        """Go past blanks and commas, and read on where the text ends in them."""
        while True:
            found = _SPACE.match(self.text, self.at)
            self._go_to(found.end() if found else self.at)
            if self.at < len(self.text) or not self._read_on():
                return

    def _go_to(self, end: int) -> None:
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    def _read_on(self, least: int = 1) -> bool:
        """Add at least so many characters to what is not read yet; False at the end of the file."""
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
                left = len(self.text) - self.at
                at = error.pos - self.at if isinstance(error, json.JSONDecodeError) else 0
                if left > MAX_LINE:
                    said = _("an object that does not end within %(most)s MB; is it the right file?")
                    raise self.source.bad(self.place, said % {"most": MAX_LINE >> 20}) from None
                # Each time twice as much, so that a long object is not begun too often.
                if isinstance(error, RecursionError) or not self._read_on(left):
                    self._refuse(at, is_open=str(error).startswith("Unterminated"))
        if not isinstance(row, dict):
            raise self.source.bad(self.place, _("not a JSON object"))
        written = self.text[self.at : end]
        if "\\u0000" in written and _holds_nul(row):
            raise self.source.bad(self.place, _("a NUL character (\\u0000); remove it"))
        # Half of a surrogate pair, which the library lets pass and no file in UTF-8 can hold.
        if ("\\ud" in written or "\\uD" in written) and not _is_whole(written.encode()):
            raise self.source.bad(self.place, _("half of a character (\\ud800 to \\udfff alone); remove it"))
        self._go_to(end)
        return row

    def _refuse(self, at: int, *, is_open: bool) -> NoReturn:
        """BadInput for the object that begins here, unreadable from character `at` on."""
        rest = self.text[self.at :]
        line = self.number if self.source.counts_objects else self.line + rest.count("\n", 0, at)
        if is_open or len(rest.rstrip()) <= at:
            raise self.source.bad(line, _("the JSON ends in the middle; copy the file again"))
        before = self.text.rfind("\n", 0, self.at + at)
        raise self.source.bad(line, _("not JSON, from character %(n)s on") % {"n": self.at + at - before})


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_holds_nul(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(_holds_nul(part) for part in value)
