"""On which line of a judges file each key stands, and the one line that says what is wrong there."""

import re
from typing import Any, NoReturn

from corpus.errors import BadInput


class KeyLines:
    """The text of a file, for errors."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.lines = _lines(text)

    def fail(self, place: str, key: str, what: str) -> NoReturn:
        """One line: file, line where it is known, table and key, what to do."""
        line = self.lines.get((place, key)) or self.lines.get((place, ""))
        where = f"{self.name}, line {line}" if line else self.name
        raise BadInput(f"{where}: {' '.join(word for word in (_title(place), key) if word)} {what}")

    def known(self, place: str, entry: dict[str, Any], keys: set[str]) -> None:
        """No other keys: a misspelt one would be ignored in silence."""
        for key in entry:
            if key not in keys:
                self.fail(place, key, f"is unknown; known are {', '.join(sorted(keys))}")

    def text(self, place: str, key: str, value: object) -> str:
        """Text in one line, as names and addresses are."""
        if not isinstance(value, str) or not value.strip() or value != value.strip() or not value.isprintable():
            self.fail(place, key, "must be text in one line, without space around it")
        return value


_TABLE = re.compile(r"\s*\[\[?\s*([A-Za-z_-]+)\s*\]\]?\s*(#.*)?")
_KEY = re.compile(r"""\s*["']?([^\s"'=\[#]+)["']?\s*=""")


def _lines(text: str) -> dict[tuple[str, str], int]:
    """{(place, key): line} of keys written one a line, which is how people write them; "" is the table's own line."""
    found: dict[tuple[str, str], int] = {}
    place, seen = "", dict.fromkeys(("judge", "price"), 0)
    for number, line in enumerate(text.splitlines(), 1):
        table, key = _TABLE.fullmatch(line), _KEY.match(line)
        if table:
            place = table[1]
            if place in seen:
                seen[place] += 1
                place = f"{place} {seen[place]}"
            found.setdefault((place, ""), number)
            found.setdefault(("", table[1]), number)
        elif key:
            found.setdefault((place, key[1]), number)
    return found


def _title(place: str) -> str:
    return {"": "", "panel": "[panel]"}.get(place, f"[[{place.partition(' ')[0]}]] {place.partition(' ')[2]}")
