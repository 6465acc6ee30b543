"""The judges file: read strictly, taken over whole or not at all."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from django.utils.translation import gettext as _
from pydantic import Field, model_validator

from corpus.formats.files import read_text
from corpus.importing.toml_files import Table, problem, read_toml
from judges.costs.price_entries import ModelPrice
from judges.panels.judge_keys import JudgeTable
from judges.panels.panel_table import PanelSettings, check_members, only_voter
from judges.records import JudgeSettings


@dataclass(frozen=True, slots=True)
class JudgesFile:
    """A file that holds together: every member of the panel is one of its judges."""

    judges: tuple[JudgeSettings, ...]
    panel: PanelSettings
    prices: tuple[ModelPrice, ...] = ()


class JudgesTables(Table):
    """The tables of the file."""

    judge: Annotated[list[JudgeTable], Field(min_length=1)] = Field(default=[], validate_default=True)
    panel: PanelSettings | None = None
    price: list[ModelPrice] = []

    @model_validator(mode="after")
    def _holds_together(self) -> "JudgesTables":
        for number, one in enumerate(self.judge):
            if one.name in [other.name for other in self.judge[:number]]:
                words = _('"%(name)s" is taken by an earlier judge; names are unique')
                raise problem(words % {"name": one.name}, "judge", number, "name")
        models = [(one.provider, one.model, one.base_url) for one in self.price]
        for number, model in enumerate(models):
            if model in models[:number]:
                words = _('"%(model)s" has a price in an earlier table; give one')
                raise problem(words % {"model": model[1]}, "price", number, "model")
        self.file()
        return self

    def file(self) -> JudgesFile:
        """Judges, panel and prices. Raises the problem of a panel that does not fit its judges."""
        judges = tuple(one.entry() for one in self.judge)
        panel = self.panel or PanelSettings(ensemble=[only_voter(judges)])
        check_members(panel, {one.name: one for one in judges})
        return JudgesFile(judges, panel, tuple(self.price))


def read(path: Path) -> JudgesFile:
    """Read and check the file. Raises BadInput with file, line where it is known, key, and what to do."""
    return parse(read_text(path), path.name)


def parse(text: str, name: str = "judges.toml") -> JudgesFile:
    """Check the text of a judges file; `name` stands in the errors. Raises BadInput."""
    return read_toml(JudgesTables, text, name).file()
