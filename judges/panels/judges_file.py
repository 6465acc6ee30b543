"""The judges file (CONTRACT): read strictly, taken over whole or not at all."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.errors import BadInput
from corpus.importing.files import read_text
from judges.costs.price_entries import PriceEntry, read_prices
from judges.panels.file_lines import KeyLines
from judges.panels.judge_keys import JudgeEntry, read_judge
from judges.panels.panel_table import PanelEntry, read_panel


@dataclass(frozen=True, slots=True)
class JudgesFile:
    """A file that holds together: every member of the panel is one of its judges."""

    judges: tuple[JudgeEntry, ...]
    panel: PanelEntry
    prices: tuple[PriceEntry, ...] = ()


def read(path: Path) -> JudgesFile:
    """Read and check the file. Raises BadInput with file, line where it is known, key, and what to do."""
    return parse(read_text(path), path.name)


def parse(text: str, name: str = "judges.toml") -> JudgesFile:
    """Check the text of a judges file; `name` stands in the errors. Raises BadInput."""
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"{name}: {error}") from error
    return _Reader(text, name).file(tables)


class _Reader(KeyLines):
    """Checks the tables, and knows on which line each key stands."""

    def file(self, tables: dict[str, Any]) -> JudgesFile:
        """All kinds of tables."""
        for key in tables.keys() - {"judge", "panel", "price"}:
            self.fail("", key, "is unknown; a judges file has [[judge]] and [[price]] tables and one [panel]")
        entries = tables.get("judge", [])
        if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
            self.fail("", "judge", "is missing or no list of tables: write each judge as [[judge]]")
        judges = tuple(read_judge(self, f"judge {number}", entry) for number, entry in enumerate(entries, 1))
        names = [judge.name for judge in judges]
        for number, name in enumerate(names):
            if name in names[:number]:
                self.fail(f"judge {number + 1}", "name", f'"{name}" is taken by an earlier judge; names are unique')
        prices = read_prices(self, tables.get("price", []))
        return JudgesFile(judges, read_panel(self, tables.get("panel"), judges), tuple(prices))
