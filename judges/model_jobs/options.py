"""Options of all jobs that call models."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from actions.options import Door, Options, option

LIMITS = ("budget", "max_calls")


class PaidOptions(Options):
    """Limits on what a job may spend."""

    budget: float | None = option(
        _("Budget (USD)"), _("The work stops at this limit. You can resume it later."), default=None, ge=0.000001
    )
    max_calls: int | None = option(_("Call limit"), default=None, ge=1, lt=1 << 31)

    @classmethod
    def names(cls, door: Door | None = None) -> list[str]:
        """Return the names of the options, with the limits last."""
        return sorted(super().names(door), key=LIMITS.__contains__)

    def for_job(self) -> dict[str, Any]:
        """Return the options for the job's plan."""
        return self.model_dump()


class DrawnOptions(PaidOptions):
    """Options of jobs in which one model works on a sample of queries."""

    judge: str = option(_("Model"))
    limit: int | None = option(
        _("Number of queries"), _("Drawn at random. Leave blank for all queries."), default=None, initial=20, ge=1
    )
    seed: int = option(_("Random seed"), default=0)


def limits_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits among a job's options; None: no limit."""
    return {name: options.get(name) for name in LIMITS}


def replace_limits(options: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with other limits; None: no limit."""
    others = {name: value for name, value in options.items() if name not in LIMITS}
    return others | {name: limits[name] for name in LIMITS if limits.get(name) is not None}
