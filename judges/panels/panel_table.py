"""The [panel] of a judges file: who debates, who votes, and how many votes must agree."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from judges.domain.copies import why_alike
from judges.domain.ensemble import SIZES, usual_majority
from judges.panels.file_lines import KeyLines
from judges.panels.judge_keys import JudgeEntry, check_text, is_whole

PANEL_KEYS = {"name", "debate", "ensemble", "adjudicator", "majority", "early_stop"}
ODD = f"{', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]}"


@dataclass(frozen=True, slots=True)
class PanelEntry:
    """The [panel]: the fields of a Panel. One of `debate` and `ensemble` may be empty."""

    debate: list[str] = field(default_factory=list)
    ensemble: list[str] = field(default_factory=list)
    name: str = "main"
    adjudicator: str = ""
    majority: int = 1
    early_stop: bool = False


def read_panel(lines: KeyLines, entry: object, judges: Sequence[JudgeEntry]) -> PanelEntry:
    """The panel, whose members are judges of this file; without a [panel] its one judge. Raises BadInput."""
    if entry is None:
        return PanelEntry(ensemble=[_only(lines, judges)])
    if not isinstance(entry, dict):
        lines.fail("", "panel", "must be one table: write [panel]")
    return _Panel(lines, judges).read(entry)


def _only(lines: KeyLines, judges: Sequence[JudgeEntry]) -> str:
    """The one judge of a file without a panel."""
    voting = [one.name for one in judges if one.preset.wire != "embed"]
    if not voting:
        lines.fail("", "judge", "makes vectors only, and no judge of this file votes: add one that judges")
    if len(voting) != 1:
        lines.fail(
            "",
            "panel",
            f"is missing: with one judge it may be left out, here are {len(voting)}; write [panel] with ensemble = "
            "[...] (who votes), debate = [...] (two who debate), or both",
        )
    return voting[0]


class _Panel:
    """Checks the table."""

    def __init__(self, lines: KeyLines, judges: Sequence[JudgeEntry]) -> None:
        self.lines = lines
        self.judges = {one.name: one for one in judges}

    def fail(self, key: str, what: str) -> NoReturn:
        """One line about a key of the panel. Raises BadInput."""
        self.lines.fail("panel", key, what)

    def read(self, entry: dict[str, Any]) -> PanelEntry:
        """All keys."""
        self.lines.known("panel", entry, PANEL_KEYS)
        debate, ensemble = self.members(entry, "debate"), self.members(entry, "ensemble")
        if not debate and not ensemble:
            self.fail("", "names nobody: give ensemble = [...] (who votes), debate = [...] (two who debate), or both")
        self.debate(debate, given="debate" in entry)
        self.ensemble(ensemble, given="ensemble" in entry)
        check_text(self.lines, "panel", "name", entry.get("name", "main"))
        if entry.get("name") == "offline":
            self.fail("name", '"offline" is the built-in panel; choose another name')
        self.adjudicator(entry)
        majority = self.majority(entry, len(ensemble))
        if not isinstance(entry.get("early_stop", False), bool):
            self.fail("early_stop", "must be true or false")
        return PanelEntry(**{**entry, "debate": debate, "ensemble": ensemble, "majority": majority})

    def majority(self, entry: dict[str, Any], voters: int) -> int:
        """Votes that must agree: more than half of them, or what the file says from there on."""
        usual = usual_majority(voters)
        given = entry.get("majority", usual)
        if "majority" in entry and not voters:
            self.fail("majority", "is of votes, and nobody votes: give ensemble = [...], or take it out")
        if not is_whole(given) or not usual <= given <= max(usual, voters):
            self.fail("majority", f"must be a whole number from {usual} to {voters}, more than half of the votes")
        return given

    def members(self, entry: dict[str, Any], key: str) -> list[str]:
        """A list of names of judges; [] where there is none."""
        names = entry.get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self.fail(key, "must be a list of names of judges")
        for name in names:
            if name not in self.judges:
                self.fail(key, f'names "{name}", which is no judge of this file')
            self.judging(name)
        return list(names)

    def judging(self, name: str) -> None:
        """It judges: vectors say nothing about a pair."""
        if self.judges[name].preset.wire == "embed":
            self.fail("", f'names "{name}", which makes vectors and judges nothing: leave it out')

    def debate(self, names: list[str], *, given: bool) -> None:
        """Two who can argue."""
        for name in names:
            if self.judges[name].preset.wire == "rerank" or self.judges[name].decides:
                self.fail("debate", f'names "{name}", which only votes: its endpoint gives scores and no text')
        if given and len(names) != 2:
            self.fail("debate", "must name two judges: who holds relevant, who holds not relevant")

    def ensemble(self, names: list[str], *, given: bool) -> None:
        """An odd number of voters; who is named again gives another sample."""
        if given and len(names) not in SIZES:
            why = f"{SIZES[-1]} at most" if len(names) > SIZES[-1] else "an even number could tie"
            self.fail("ensemble", f"must name {ODD} judges, and names {len(names)}: {why}")
        for name in dict.fromkeys(names):
            why = why_alike(self.judges[name]) if names.count(name) > 1 else ""
            if why:
                self.fail("ensemble", f'names "{name}" {names.count(name)} times, and all would answer alike: {why}')

    def adjudicator(self, entry: dict[str, Any]) -> None:
        """One more judge of the file."""
        if "adjudicator" not in entry:
            return
        if entry["adjudicator"] not in self.judges:
            self.fail("adjudicator", "is no judge of this file")
        self.judging(entry["adjudicator"])
