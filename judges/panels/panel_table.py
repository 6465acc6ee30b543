"""The [panel] of a judges file: who debates, who votes, and how many votes must agree."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from corpus.importing.toml_files import Switch, TomlTable, otherwise, problem
from judges.domain.copies import why_alike
from judges.domain.ensemble import SIZES, usual_majority
from judges.panels.judge_keys import Name
from judges.records import JudgeSettings

ODD = ", ".join(map(str, SIZES[:-1]))


def _check_name(name: str) -> str:
    if name == "offline":
        raise problem(_('"offline" is the built-in panel; choose another name'))
    return name


Names = Annotated[list[str], otherwise(gettext_lazy("must be a list of names of judges"))]


class PanelSettings(TomlTable):
    """The [panel] table: fields of a Panel. One of `debate` and `ensemble` may be empty."""

    debate: Names = Field(default_factory=list)
    ensemble: Names = Field(default_factory=list)
    name: Annotated[Name, AfterValidator(_check_name)] = "main"
    adjudicator: Annotated[str, otherwise(gettext_lazy("is not a judge of this file"))] = ""
    majority: int = Field(default_factory=lambda panel: usual_majority(len(panel.get("ensemble", ()))))
    early_stop: Switch = False

    @field_validator("debate")
    @classmethod
    def _check_debate(cls, names: list[str]) -> list[str]:
        if len(names) != 2:
            raise problem(_("must name two judges: one argues relevant, the other not relevant"))
        return names

    @field_validator("ensemble")
    @classmethod
    def _check_ensemble(cls, names: list[str]) -> list[str]:
        if len(names) not in SIZES:
            words = _("must name %(odd)s or %(most)s judges, and names %(n)s: an even number could tie")
            if len(names) > SIZES[-1]:
                words = _("must name %(odd)s or %(most)s judges, and names %(n)s: %(most)s at most")
            raise problem(words % {"odd": ODD, "n": len(names), "most": SIZES[-1]})
        return names

    @field_validator("majority", mode="before")
    @classmethod
    def _check_majority(cls, value: Any, info: ValidationInfo) -> Any:
        """Return the majority if it is more than half of the votes, and at most all of them."""
        voters = len(info.data.get("ensemble", ()))
        usual = usual_majority(voters)
        if not voters:
            raise problem(_("is for votes, and no one votes: give ensemble = [...], or remove it"))
        if not isinstance(value, int) or isinstance(value, bool) or not usual <= value <= voters:
            words = _("must be a whole number from %(usual)s to %(voters)s, more than half of the votes")
            raise problem(words % {"usual": usual, "voters": voters})
        return value

    @model_validator(mode="after")
    def _check_members(self) -> "PanelSettings":
        if not self.debate and not self.ensemble:
            words = _("names no one: give ensemble = [...] (who votes), debate = [...] (two who debate), or both")
            raise problem(words)
        return self


def usual_panel(judges: Sequence[JudgeSettings]) -> PanelSettings | None:
    """Return the panel of a file that names none: its only judge that judges, or None if it has none that does.

    Raises a problem if there are several.
    """
    voters = [judge.name for judge in judges if judge.preset.judges]
    if not voters:
        return None
    if len(voters) != 1:
        words = _(
            "is missing: with one judge it may be left out, here are %(n)s; write [panel] with ensemble = "
            "[...] (who votes), debate = [...] (two who debate), or both"
        )
        raise problem(words % {"n": len(voters)}, "panel")
    return PanelSettings(ensemble=voters)


def check_members(panel: PanelSettings, judges: Mapping[str, JudgeSettings]) -> None:
    """Check that each member is a judge of the file and is capable of its role on the panel."""
    for name in panel.debate:
        _check_member(name, "debate", judges)
        if judges[name].preset.wire == "rerank" or judges[name].decides:
            words = _('names "%(name)s", which only votes: its endpoint gives scores and no text')
            raise problem(words % {"name": name}, "panel", "debate")
    for name in panel.ensemble:
        _check_member(name, "ensemble", judges)
        count = panel.ensemble.count(name)
        if count > 1 and (why := why_alike(judges[name])):
            words = _('names "%(name)s" %(times)s times, and all would answer alike: %(why)s')
            raise problem(words % {"name": name, "times": count, "why": why}, "panel", "ensemble")
    if "adjudicator" in panel.model_fields_set:
        if panel.adjudicator not in judges:
            raise problem(_("is not a judge of this file"), "panel", "adjudicator")
        _check_member(panel.adjudicator, "adjudicator", judges)


def _check_member(name: str, key: str, judges: Mapping[str, JudgeSettings]) -> None:
    if name not in judges:
        raise problem(_('names "%(name)s", which is not a judge of this file') % {"name": name}, "panel", key)
    if not judges[name].preset.judges:
        words = _('names "%(name)s", which makes vectors and judges nothing: leave it out')
        if judges[name].preset.wire == "search":
            words = _('names "%(name)s", which searches the web and judges nothing: leave it out')
        raise problem(words % {"name": name}, "panel")
