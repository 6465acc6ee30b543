"""The [panel] of a judges file: who debates, who votes, and how many votes must agree."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from corpus.importing.toml_files import Switch, Table, otherwise, problem
from judges.domain.copies import why_alike
from judges.domain.ensemble import SIZES, usual_majority
from judges.panels.judge_keys import Name
from judges.records import JudgeSettings

ODD = f"{', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]}"


def _own(name: str) -> str:
    if name == "offline":
        raise problem('"offline" is the built-in panel; choose another name')
    return name


Names = Annotated[list[str], otherwise("must be a list of names of judges")]


class PanelSettings(Table):
    """The [panel]: the fields of a Panel. One of `debate` and `ensemble` may be empty."""

    debate: Names = Field(default_factory=list)
    ensemble: Names = Field(default_factory=list)
    name: Annotated[Name, AfterValidator(_own)] = "main"
    adjudicator: Annotated[str, otherwise("is no judge of this file")] = ""
    majority: int = Field(default_factory=lambda panel: usual_majority(len(panel.get("ensemble", ()))))
    early_stop: Switch = False

    @field_validator("debate")
    @classmethod
    def _two(cls, names: list[str]) -> list[str]:
        if len(names) != 2:
            raise problem("must name two judges: who holds relevant, who holds not relevant")
        return names

    @field_validator("ensemble")
    @classmethod
    def _odd(cls, names: list[str]) -> list[str]:
        if len(names) not in SIZES:
            why = f"{SIZES[-1]} at most" if len(names) > SIZES[-1] else "an even number could tie"
            raise problem(f"must name {ODD} judges, and names {len(names)}: {why}")
        return names

    @field_validator("majority", mode="before")
    @classmethod
    def _most(cls, given: Any, info: ValidationInfo) -> Any:
        """More than half of the votes, or what the file says from there on."""
        voters = len(info.data.get("ensemble", ()))
        usual = usual_majority(voters)
        if not voters:
            raise problem("is of votes, and nobody votes: give ensemble = [...], or take it out")
        if not isinstance(given, int) or isinstance(given, bool) or not usual <= given <= voters:
            raise problem(f"must be a whole number from {usual} to {voters}, more than half of the votes")
        return given

    @model_validator(mode="after")
    def _somebody(self) -> "PanelSettings":
        if not self.debate and not self.ensemble:
            raise problem("names nobody: give ensemble = [...] (who votes), debate = [...] (two who debate), or both")
        return self


def only_voter(judges: Sequence[JudgeSettings]) -> str:
    """The one judge of a file without a panel."""
    voting = [one.name for one in judges if one.preset.wire != "embed"]
    if not voting:
        raise problem("makes vectors only, and no judge of this file votes: add one that judges", "judge")
    if len(voting) != 1:
        raise problem(
            f"is missing: with one judge it may be left out, here are {len(voting)}; write [panel] with ensemble = "
            "[...] (who votes), debate = [...] (two who debate), or both",
            "panel",
        )
    return voting[0]


def check_members(panel: PanelSettings, judges: Mapping[str, JudgeSettings]) -> None:
    """Check that each member is a judge of the file and can do what it sits on the panel for."""
    for name in panel.debate:
        _check_member(name, "debate", judges)
        if judges[name].preset.wire == "rerank" or judges[name].decides:
            raise problem(f'names "{name}", which only votes: its endpoint gives scores and no text', "panel", "debate")
    for name in panel.ensemble:
        _check_member(name, "ensemble", judges)
        times = panel.ensemble.count(name)
        if times > 1 and (why := why_alike(judges[name])):
            raise problem(f'names "{name}" {times} times, and all would answer alike: {why}', "panel", "ensemble")
    if "adjudicator" in panel.model_fields_set:
        if panel.adjudicator not in judges:
            raise problem("is no judge of this file", "panel", "adjudicator")
        _check_member(panel.adjudicator, "adjudicator", judges)


def _check_member(name: str, key: str, judges: Mapping[str, JudgeSettings]) -> None:
    if name not in judges:
        raise problem(f'names "{name}", which is no judge of this file', "panel", key)
    if judges[name].preset.wire == "embed":
        raise problem(f'names "{name}", which makes vectors and judges nothing: leave it out', "panel")
