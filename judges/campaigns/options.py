"""Options of campaigns: which judges judge, by which policy, and what they may spend."""

from typing import Annotated, Any, ClassVar, Literal, get_args

from django.utils.translation import gettext_lazy as _
from pydantic import AfterValidator

from actions.options import Names, Options, option
from corpus.errors import BadOption
from judges.domain.debate import MOST_AGENTS
from judges.domain.protocol import FILTERS
from judges.models import Campaign

Money = Annotated[float, "USD"]
# Policies that are started here; evidence, runs by models and lara start their own.
JudgingPolicy = Literal["debate", "ensemble", "debate+ensemble", "single", "human"]
JUDGING: tuple[str, ...] = get_args(JudgingPolicy)


def three_or_none(names: tuple[str, ...]) -> tuple[str, ...]:
    """Check the length of a filter. Raises BadOption."""
    if names and len(names) != FILTERS:
        raise BadOption("filter", _("Name three judges of different families, or none."))
    return names


class JudgingOptions(Options):
    """Options of every start that judges pairs: judges and limits."""

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
        """Return the options that differ from the panel's usual debate."""
        return self.model_dump(include={"rounds", "debaters", "adjudicator"}, exclude_defaults=True)


class CampaignOptions(JudgingOptions):
    """Options of a campaign (judges.domain.protocol explains the papers' options)."""

    policy: JudgingPolicy | None = option(
        _("Policy"),
        _("Empty: the fullest that the panel supports."),
        default=None,
        choices={name: title for name, title in Campaign.Policy.choices if name in JUDGING},
    )
    judges: Names = option(
        _("Judges"),
        _("Judges that vote, an odd number; a repeated name votes again. Empty: the panel's."),
        default=(),
    )
    agents: int | None = option(
        _("Agents"),
        _("With 4, both debaters argue both sides and all must agree. Empty: one for each debater."),
        default=None,
        ge=1,
        le=MOST_AGENTS,
    )
    stance_order: Literal["relevant-first", "irrelevant-first"] = option(
        _("Agent A starts with"),
        default="relevant-first",
        choices={"relevant-first": _("relevant first"), "irrelevant-first": _("not relevant first")},
    )
    temperature: float | None = option(
        _("Temperature"), _("Overrides the debaters' own temperature."), default=None, ge=0, le=2
    )
    batch: bool = option(_("Use batch APIs: half price, takes hours"), default=False)
    guard: bool = option(
        _("Do not count a concession without new evidence as agreement (people judge the pair)"), default=False
    )
    play_on: bool = option(_("Run all rounds, even after agreement (to study debates)"), default=False)
    no_debate_for_people: bool = option(
        _("No debate for people: do not debate escalated pairs that the policy did not debate"), default=False
    )
    limit: int | None = option(
        _("Maximum pairs"), _("For the whole campaign. Empty: all."), default=None, ge=1, lt=1 << 31
    )
    again: bool = option(_("Judge pairs again that are already judged (new campaign)"), default=False)
    fresh: bool = option(
        _("Ask everything again"),
        _("Of a campaign that judges again: earlier answers of these judges are paid for once more."),
        default=False,
    )

    leaves_out: ClassVar = {
        "page": {
            "debaters": "panels have their own page",
            "judges": "panels have their own page",
            "retry_failed": "a campaign's page has a button for it",
            "fresh": "judging again on the page keeps the answers that are paid for",
        }
    }
