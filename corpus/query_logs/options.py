"""Options of an import of a query log."""

from typing import Literal, Self

from django.utils.translation import gettext_lazy as _
from pydantic import model_validator

from actions.options import Options, option
from corpus.errors import BadOption

MOST = 1_000_000  # Queries of a sample.


class QueryLogOptions(Options):
    """Which queries of a log a collection gets. No operation of the API has them: programs run the command."""

    sample: int | None = option(_("Queries to draw"), _("Empty: every query of the log."), default=None, ge=1, le=MOST)
    by: Literal["uniform", "pptss", "head-torso-tail"] = option(
        _("Drawn by"),
        _("The same log, options and seed draw the same queries."),
        default="uniform",
        choices={
            "uniform": _("Each query alike (uniform)"),
            "pptss": _("In proportion to how often it was asked (pptss)"),
            "head-torso-tail": _("A third each from the head, torso and tail of the traffic (head-torso-tail)"),
        },
    )
    seed: int = option(_("Seed"), default=0, ge=0, lt=1 << 31)
    query_column: str = option(
        _("Column of the queries"), _("Its header, where it is not “query” or similar."), default="", at_most=200
    )
    count_column: str = option(
        _("Column of the counts"), _("Its header, where it is not “count” or similar."), default="", at_most=200
    )

    leaves_out = {
        "command": {
            "query_column": "the option column names it, as for every table",
            "count_column": "the option column names it, as for every table",
        },
    }

    @model_validator(mode="after")
    def a_way_needs_a_size(self) -> Self:
        if self.sample is None and self.by != "uniform":
            raise BadOption("sample", _("Say how many queries to draw: without a number every query is taken."))
        return self
