"""Options of a report."""

from typing import Literal

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from actions.options import Options, option

Weights = Literal["plain", "counts"]
WEIGHTS = {"plain": _("Each query alike"), "counts": _("Weighted by the query log's counts")}


class ReportOptions(Options):
    """Which runs a report measures, and by which two versions of the qrels."""

    runs: list[str] = option(_("Runs"), _("Empty: all that are ready and deep enough."), default=[], at_most=1000)
    before: int | None = option(
        pgettext_lazy("value", "Before"),
        _("Number of a version of the qrels. Empty: the first."),
        default=None,
        ge=1,
        lt=1 << 31,
    )
    after: int | None = option(
        pgettext_lazy("value", "After"), _("Empty: the newest filled one."), default=None, ge=1, lt=1 << 31
    )
    k: int = option(_("Depth k"), default=10, ge=1, le=1000)
    aspects_k: int | None = option(
        _("Depth of alpha-nDCG and A-Recall"),
        _("Leave blank for depth k. BRIGHT-Pro uses 25."),
        default=None,
        ge=1,
        le=1000,
    )
    weights: Weights = option(
        _("Means over queries"),
        _("For a pptss sample, the plain mean represents the traffic, but the busiest queries too little."),
        default="plain",
        choices=WEIGHTS,
    )
