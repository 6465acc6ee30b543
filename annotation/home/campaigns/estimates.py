"""The estimate of a new campaign: its calls, their cost, and the work that it leaves to people.

The share of pairs that people will judge is forecast from the collection's earlier campaigns if they finished enough
pairs, and otherwise taken from DREAM's measurements (B.2, table 11).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from django.conf import settings

from actions.services import Actor
from annotation.home.campaigns.counts import CampaignCounts, load_raw_counters, name_counts
from annotation.quality.panels.self_checks import LARGE_CAMPAIGN_PAIRS, SelfCheckState, unchecked_judges
from annotation.work.queue.judging_time import median_seconds
from corpus.models import Collection
from judges.campaigns.configurations import Configuration, configuration_of
from judges.campaigns.estimates import Estimate
from judges.campaigns.forecasts import forecast_judging
from judges.campaigns.lifecycle import pairs_to_judge
from judges.campaigns.options import CampaignOptions
from judges.campaigns.selectors import latency_medians
from judges.costs.collection_budgets import CollectionBudget, collection_budget
from judges.domain.routing import VOTES_OF_HUMAN
from judges.models import Campaign

# DREAM, table 11: the share of pairs that two debaters leave to people, and the seconds per pair of a person and of a
# debate.
DREAM_ESCALATED_SHARE = 0.035
DREAM_JUDGMENT_SECONDS = 30.0
DREAM_DEBATE_SECONDS = 4.3
MIN_MEASURED_PAIRS = 20  # Fewest finished pairs of earlier campaigns from which a share is forecast.
MAX_EARLIER_CAMPAIGNS = 20  # The forecast considers only this many of the newest campaigns.
Policy = Campaign.Policy


@dataclass(frozen=True, slots=True)
class PeopleEstimate:
    """The work that a campaign leaves to people, and the time of its model calls."""

    share: float  # Share of the campaign's pairs that people judge.
    share_basis: str  # Where the share comes from, as ExpectedShare explains it.
    measured_pairs: int  # Number of finished pairs from which the share was forecast.
    pairs: int  # Number of pairs that people judge, each of them one or several times.
    judgments: int
    seconds_per_judgment: float  # The collection's median if `is_timed`, else that of the paper.
    is_timed: bool
    hours: float
    cost: float | None  # USD; None without an hourly rate.
    model_seconds: float  # Time of all model calls.
    is_model_timed: bool  # Whether `model_seconds` is from an earlier campaign here, and not from the paper.

    @property
    def share_text(self) -> str:
        """The share as a percentage."""
        return f"{self.share:.1%}"


class CampaignEstimate(TypedDict):
    """The estimate of a campaign, which is the context of the page that confirms its start."""

    configuration: Configuration
    budget: CollectionBudget
    exceeds_budget: bool  # Whether the known costs are expected to reach a limit of the collection.
    pairs: int
    estimate: Estimate | None  # Calls and money; None if there is no pair to judge.
    people: PeopleEstimate
    unchecked_judges: Sequence[SelfCheckState]  # Judges without a passed self-check; only of a large campaign.


def estimate_campaign(actor: Actor, collection: Collection, options: CampaignOptions) -> CampaignEstimate:
    """Estimate calls, money and people's hours of a campaign without starting it."""
    configuration = configuration_of(options)
    budget = collection_budget(collection)
    pairs = pairs_to_judge(collection, configuration, limit=options.limit, again=options.again)
    estimate = forecast_judging(
        collection, configuration, limit=options.limit, again=options.again, fresh=options.fresh
    )
    calls = estimate.calls.expected if estimate else 0.0
    is_large = pairs >= LARGE_CAMPAIGN_PAIRS
    return {
        "configuration": configuration,
        "budget": budget,
        "exceeds_budget": estimate is not None and budget.is_short_for(estimate.known.expected),
        "pairs": pairs,
        "estimate": estimate,
        "people": estimate_people(collection, configuration, pairs, calls),
        "unchecked_judges": unchecked_judges(collection, configuration.judges) if is_large else (),
    }


def estimate_people(collection: Collection, configuration: Configuration, pairs: int, calls: float) -> PeopleEstimate:
    """Estimate the work that a campaign leaves to people, and the time of its model calls.

    `pairs` is the number of pairs that the campaign judges, `calls` the expected number of its model calls.
    """
    # 1. The pairs that people judge, and the time that they need.
    campaigns_with_judges = Campaign.judging.filter(collection=collection).exclude(policy=Policy.HUMAN)
    earlier_campaigns = list(campaigns_with_judges.order_by("-pk")[:MAX_EARLIER_CAMPAIGNS])
    expected = _expect_share(earlier_campaigns, configuration)
    pairs_to_people = round(pairs * expected.share)
    judgments_per_pair = collection.overlap
    if configuration.policy == Policy.HUMAN:
        judgments_per_pair = max(VOTES_OF_HUMAN, collection.overlap)
    judgments = pairs_to_people * judgments_per_pair
    measured_seconds = median_seconds(collection)
    seconds_per_judgment = DREAM_JUDGMENT_SECONDS if measured_seconds is None else measured_seconds
    hours = judgments * seconds_per_judgment / 3600

    # 2. The time of the models: for one pair, for all pairs in parallel, or by the rate limit, whichever is longest.
    same_policy = next((campaign for campaign in earlier_campaigns if campaign.policy == configuration.policy), None)
    latency = latency_medians(same_policy) if same_policy else None
    pair_seconds = latency["wall"] / 1000 if latency else DREAM_DEBATE_SECONDS
    parallel_seconds = pairs * pair_seconds / settings.PAIRS_IN_FLIGHT
    # The judges share the calls evenly, so the one with the strictest limit ends last.
    rate_limits = [judge.requests_per_minute for judge in configuration.judges if judge.requests_per_minute]
    calls_per_judge = calls / max(1, len(configuration.judges))
    rate_limit_seconds = calls_per_judge / min(rate_limits) * 60 if rate_limits else 0.0

    return PeopleEstimate(
        share=expected.share,
        share_basis=expected.basis,
        measured_pairs=expected.measured_pairs,
        pairs=pairs_to_people,
        judgments=judgments,
        seconds_per_judgment=seconds_per_judgment,
        is_timed=measured_seconds is not None,
        hours=hours,
        cost=None if collection.hourly_rate is None else hours * collection.hourly_rate,
        model_seconds=max(pair_seconds, parallel_seconds, rate_limit_seconds),
        is_model_timed=latency is not None,
    )


class ExpectedShare(NamedTuple):
    """The share of a campaign's pairs that people will judge.

    Its basis is "rule" if the policy fixes it, "policy" if it is forecast from earlier campaigns of the same policy,
    "collection" if it is forecast from those of all policies, or "paper" if it is that of DREAM.
    """

    share: float
    basis: str
    measured_pairs: int = 0  # Number of finished pairs from which the share was forecast.


def _expect_share(earlier_campaigns: Sequence[Campaign], configuration: Configuration) -> ExpectedShare:
    """Return the share of a new campaign's pairs that people will judge, from earlier campaigns if possible."""
    if configuration.policy == Policy.HUMAN:
        return ExpectedShare(1.0, "rule")
    raw_counters_by_campaign = load_raw_counters([campaign.pk for campaign in earlier_campaigns])
    counts_by_campaign = {
        campaign: name_counts(raw_counters_by_campaign[campaign.pk]) for campaign in earlier_campaigns
    }
    counts_of_policy = [
        counts for campaign, counts in counts_by_campaign.items() if campaign.policy == configuration.policy
    ]
    share_of_policy = _measure_share(counts_of_policy, "policy")
    if share_of_policy is not None:
        return share_of_policy
    # Campaigns of other policies say nothing about a single judge, which sends no pair to people.
    if configuration.policy == Policy.SINGLE:
        return ExpectedShare(0.0, "rule")
    share_of_collection = _measure_share(list(counts_by_campaign.values()), "collection")
    return share_of_collection or ExpectedShare(DREAM_ESCALATED_SHARE, "paper")


def _measure_share(counts_of_campaigns: Sequence[CampaignCounts], basis: str) -> ExpectedShare | None:
    """Return the share of pairs that campaigns sent to people; None if they finished too few pairs."""
    finished_pairs = sum(counts.finished for counts in counts_of_campaigns)
    if finished_pairs < MIN_MEASURED_PAIRS:
        return None
    escalated_pairs = sum(counts.escalated for counts in counts_of_campaigns)
    return ExpectedShare(escalated_pairs / finished_pairs, basis, finished_pairs)
