"""Options of a gate: two runs, the measures, how far they may fall, and who judges what decides."""

from typing import ClassVar, Self

from django.utils.translation import gettext_lazy as _
from pydantic import model_validator

from actions.options import Options, option
from benchmark.report.options import WEIGHTS, Weights
from corpus.errors import BadOption
from judges.campaigns.options import Money


class GateOptions(Options):
    """Options of a verdict on a new run beside an old one."""

    run: str = option(_("New run"), at_least=1, at_most=100)
    against: str = option(_("Old run"), _("The run that it may replace."), at_least=1, at_most=100)
    measures: str = option(
        _("Measures"),
        _("nDCG@k, R@k, P@k, Hit@k, RR or AP, separated by blanks or commas."),
        default="nDCG@10",
        at_least=1,
        at_most=200,
    )
    max_drop: float = option(_("Largest drop"), _("How far the mean of a measure may fall."), default=0.01, ge=0, le=1)
    confidence: float = option(_("Confidence"), _("Of the intervals."), default=0.95, ge=0.5, le=0.999)
    weights: Weights = option(_("Means over queries"), default="plain", choices=WEIGHTS)
    qrels: int | None = option(
        _("Qrels"), _("Number of the version to measure by. Empty: the newest."), default=None, ge=1, lt=1 << 31
    )
    judge: bool = option(
        _("Have the deciding pairs judged"),
        _("By the default panel, where unjudged documents decide the verdict."),
        default=False,
    )
    budget: Money | None = option(
        _("Budget for judging (USD)"), _("The judges stop at this cost."), default=None, gt=0, le=1e9
    )

    leaves_out: ClassVar = {
        "page": {
            "judge": "the page of the verdict has them judged, after an estimate",
            "budget": "the same",
        }
    }

    @model_validator(mode="after")
    def check_together(self) -> Self:
        """Refuse a run beside itself, and a budget for nothing."""
        if self.run == self.against:
            raise BadOption("against", _("Choose another run: a run cannot replace itself."))
        if self.budget is not None and not self.judge:
            raise BadOption("budget", _("A budget is for judging: choose to have the deciding pairs judged, too."))
        return self
