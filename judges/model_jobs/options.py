"""What jobs that ask models can be told, whatever their kind."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from actions.options import Door, Options, option

LIMITS = ("budget", "max_calls")


class PaidOptions(Options):
    """What a job may spend in all."""

    budget: float | None = option(
        _("Budget (USD)"), _("The work stops at this limit. You can resume it later."), default=None, ge=0.000001
    )
    max_calls: int | None = option(_("Call limit"), default=None, ge=1, lt=1 << 31)

    @classmethod
    def names(cls, door: Door | None = None) -> list[str]:
        """Return the names of the options; the limits come last."""
        return sorted(super().names(door), key=LIMITS.__contains__)

    def for_job(self) -> dict[str, Any]:
        """Return the options as the job's plan reads them."""
        return self.model_dump()


class DrawnOptions(PaidOptions):
    """What a job can be told that a model does for queries which are drawn."""

    judge: str = option(_("Model"))
    limit: int | None = option(
        _("Number of queries"), _("Drawn at random. Leave blank for all queries."), default=None, initial=20, ge=1
    )
    seed: int = option(_("Random seed"), default=0)


def limits_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits among a job's options; None: there is no such limit."""
    return {name: options.get(name) for name in LIMITS}


def replace_limits(options: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with other limits; None: no limit."""
    others = {name: value for name, value in options.items() if name not in LIMITS}
    return others | {name: limits[name] for name in LIMITS if limits.get(name) is not None}
