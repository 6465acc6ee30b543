"""What judging can be told: which judges ask whom, and what they may spend."""

from typing import Annotated, Any

from django.utils.translation import gettext_lazy as _
from pydantic import AfterValidator

from actions.options import Names, Options, option
from corpus.errors import BadOption

Money = Annotated[float, "USD"]


def three_or_none(names: tuple[str, ...]) -> tuple[str, ...]:
    """Check the length of a filter. Raises BadOption."""
    if names and len(names) != 3:
        raise BadOption("filter", _("Name three judges of different families, or none."))
    return names


class JudgingOptions(Options):
    """Who judges by which policy, and within which limits."""

    policy: str | None = option(
        _("Policy"), _("How pairs are judged. Empty: the fullest policy that the panel supports."), default=None
    )
    panel: str | None = option(_("Panel"), _("Empty: the default panel."), default=None, at_most=100)
    filter: Annotated[Names, AfterValidator(three_or_none)] = option(
        _("Filter: three judges of different families"),
        _("If all three judges say “not relevant”, the pair gets that label and no other judge is asked."),
        default=(),
    )
    rounds: int | None = option(_("Maximum number of debate rounds"), _("Empty: 2."), default=None, ge=1, le=5)
    debaters: Names = option(
        _("Debaters"),
        _("Two judges: the first argues for relevance, the second against. Empty: the panel's."),
        default=(),
    )
    adjudicator: str = option(
        _("Adjudicator"),
        _("Judge that resolves disagreements in place of people; “panel” takes the panel's own."),
        default="",
    )
    budget: Money | None = option(
        _("Budget (USD)"), _("Judging stops at this cost. You can resume it later."), default=None, gt=0, le=1e9
    )
    max_calls: int | None = option(
        _("Call limit"), _("Judging stops after so many model calls."), default=None, ge=1, lt=1 << 31
    )
    failed_to_people: bool = option(_("Send failed pairs to people"), default=False)
    retry_failed: bool = option(_("Judge failed pairs again"), default=False)

    def debate(self) -> dict[str, Any]:
        """Return what replaces the panel's usual debate."""
        return self.model_dump(include={"rounds", "debaters", "adjudicator"}, exclude_defaults=True)
