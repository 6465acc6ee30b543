"""The judges file, which is read strictly: a file with any problem is rejected as a whole."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from django.utils.translation import gettext as _
from pydantic import Field, model_validator

from corpus.formats.files import read_text
from corpus.importing.toml_files import TomlTable, problem, read_toml
from judges.costs.price_entries import ModelPrice
from judges.panels.judge_keys import JudgeTable
from judges.panels.panel_table import PanelSettings, check_members, usual_panel
from judges.records import JudgeSettings


@dataclass(frozen=True, slots=True)
class JudgesFile:
    """A consistent file: every member of the panel is one of its judges."""

    judges: tuple[JudgeSettings, ...]
    panel: PanelSettings | None  # None: no judge of it judges pairs; it has embedders or web searches only.
    prices: tuple[ModelPrice, ...] = ()


class JudgesTables(TomlTable):
    """The tables of the file."""

    judge: Annotated[list[JudgeTable], Field(min_length=1)] = Field(default=[], validate_default=True)
    panel: PanelSettings | None = None
    price: list[ModelPrice] = []

    @model_validator(mode="after")
    def _check_consistency(self) -> "JudgesTables":
        for number, judge in enumerate(self.judge):
            if judge.name in [earlier_judge.name for earlier_judge in self.judge[:number]]:
                words = _('"%(name)s" is taken by an earlier judge; names are unique')
                raise problem(words % {"name": judge.name}, "judge", number, "name")
        models = [(judge.provider, judge.model, judge.base_url) for judge in self.price]
        for number, model in enumerate(models):
            if model in models[:number]:
                words = _('"%(model)s" has a price in an earlier table; give one')
                raise problem(words % {"model": model[1]}, "price", number, "model")
        self.file()
        return self

    def file(self) -> JudgesFile:
        """Return judges, panel and prices. Raises the problem of a panel that does not fit its judges."""
        judges = tuple(judge.entry() for judge in self.judge)
        panel = self.panel or usual_panel(judges)
        if panel:
            check_members(panel, {judge.name: judge for judge in judges})
        return JudgesFile(judges, panel, tuple(self.price))


def read(path: Path) -> JudgesFile:
    """Read and check the file. Raises BadInput with the file, the line if known, the key, and what to do."""
    return parse(read_text(path), path.name)


def parse(text: str, name: str = "judges.toml") -> JudgesFile:
    """Check the text of a judges file. `name`: the file's name for errors. Raises BadInput."""
    return read_toml(JudgesTables, text, name).file()
