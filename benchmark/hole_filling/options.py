"""Options of hole filling."""

from typing import ClassVar, Self

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _
from pydantic import model_validator

from actions.options import option
from corpus.errors import BadOption
from judges.campaigns.options import JudgingOptions

DEEPEST = 1000  # Documents of a run for each query, at most.


class FillingPolicy(TextChoices):
    """How unjudged pairs are judged: by people alone, or by judges first."""

    PEOPLE = "people", _("people judge every pair")
    DEBATE_ENSEMBLE = "debate+ensemble", _("debate and panel, then people")
    DEBATE = "debate", _("debate, then people")
    ENSEMBLE = "ensemble", _("panel, then people")
    SINGLE = "single", _("one judge only")


class FillingOptions(JudgingOptions):
    """Options of hole filling: the pool, the qrels to complete, and who judges."""

    runs: list[str] = option(_("Runs"), _("Their first documents make the pool."), at_least=1, at_most=1000)
    depth: int = option(_("Depth"), _("Documents of each run that enter the pool."), default=10, ge=1, le=DEEPEST)
    qrels: int | None = option(
        _("Qrels to complete"), _("Number of the version. Empty: the original."), default=None, ge=1, lt=1 << 31
    )
    first: int | None = option(
        _("Number of pairs, most informative first"),
        _("Judge only the pairs that could change the order of the runs most. Empty: all."),
        default=None,
        initial=100,
        ge=1,
        le=2000,
    )
    policy: FillingPolicy | None = option(
        _("Judging"),
        _("Empty: the fullest policy that the panel supports."),
        default=None,
        initial=FillingPolicy.PEOPLE,
    )

    leaves_out: ClassVar = {
        "page": {
            "rounds": "a debate is the panel's: who wants another starts a campaign",
            "debaters": "the same",
            "adjudicator": "the same",
            "failed_to_people": "the page of the filling's campaign does it",
            "retry_failed": "the page of the filling's campaign does it",
        }
    }

    @model_validator(mode="after")
    def people_ask_no_model(self) -> Self:
        """Reject options of judges where people judge every pair."""
        judges_options = ("panel", "filter", "rounds", "debaters", "adjudicator", "budget", "max_calls", "retry_failed")
        if self.policy == FillingPolicy.PEOPLE:
            for name in judges_options:
                if getattr(self, name):
                    raise BadOption(name, _("People judge every pair, and no model is used: leave this empty."))
        return self
