"""A collection's campaigns with their counters, and the estimate of a new campaign.

The share of pairs that people will judge is forecast from the collection's earlier campaigns if they
judged enough pairs, and otherwise taken from DREAM's measurements (B.2, table 11).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypedDict

from django.conf import settings
from django.db.models import Prefetch, Sum
from django.utils import timezone

from actions.services import Actor
from annotation.quality.panels.self_checks import LARGE_CAMPAIGN_PAIRS, SelfCheckState, unchecked_judges
from annotation.work.queue.judging_time import median_seconds
from corpus.models import Collection
from judges.campaigns.configurations import Configuration, configuration_of, describe_panel
from judges.campaigns.estimates import Estimate
from judges.campaigns.forecasts import forecast_judging
from judges.campaigns.judge_reports import JudgeReport, describe_reports, judge_reports, other_models
from judges.campaigns.lifecycle import pairs_to_judge
from judges.campaigns.options import CampaignOptions
from judges.campaigns.selectors import latency_medians
from judges.costs.accounting import Paid, format_cost, of_calls
from judges.costs.collection_budgets import CollectionBudget, collection_budget
from judges.domain.routing import VOTES_OF_HUMAN
from judges.engine import notifications
from judges.engine.account_states import Account, AccountState, read_account_states
from judges.models import Attempt, Campaign, JudgeVersion, Tally
from judges.models.batches import Batch

# DREAM, table 11: the share of pairs that two debaters leave to people, and the seconds per pair of a person and of a
# debate.
DREAM_ESCALATED_SHARE = 0.035
DREAM_JUDGMENT_SECONDS = 30.0
DREAM_DEBATE_SECONDS = 4.3
MIN_MEASURED_PAIRS = 20  # Fewest finished pairs of earlier campaigns from which a share is forecast.
MAX_EARLIER_CAMPAIGNS = 20  # The forecast considers only this many of the newest campaigns.
Policy = Campaign.Policy


@dataclass(frozen=True, slots=True)
class AccountUse:
    """A provider's account that a campaign's judges call, with its state and the ids of these judges."""

    state: AccountState
    judges: tuple[int, ...]


@dataclass(frozen=True)
class CampaignRow:
    """A campaign in the list, with its counters."""

    campaign: Campaign
    counts: dict[str, float]  # By key; judges.costs.counters explains the keys.
    # Voters and debaters are in the order of the panel; a judge occurs once for each of its samples.
    voters: tuple[JudgeVersion, ...] = ()
    debaters: tuple[JudgeVersion, ...] = ()
    reports: tuple[JudgeReport, ...] = ()
    open_batches: tuple[Batch, ...] = ()

    @property
    def judge_notes(self) -> list[str]:
        """Descriptions of judges with unusable answers and what helps, and of other models that answered."""
        return describe_reports(self.reports, other_models(self.counts))

    def _count(self, key: str) -> int:
        return int(self.counts.get(key, 0))

    def _sum_kinds(self, name: str) -> int:
        """Return the sum of the counters `name:<kind>`, such as those of all reasons for "escalated"."""
        return int(sum(value for key, value in self.counts.items() if key.startswith(f"{name}:")))

    @property
    def pairs(self) -> int:
        """Number of pairs in the campaign."""
        return self._count("pairs")

    @property
    def labelled(self) -> int:
        """Number of pairs that the policy labelled, or for which evidence was written."""
        return self._sum_kinds("labelled") + self._count("written")

    @property
    def escalated(self) -> int:
        """Number of pairs that went to people for a label; the pairs of label audits already have one."""
        return self._sum_kinds("escalated") - self._count("escalated:audit")

    @property
    def failed(self) -> int:
        """Number of pairs for which the judges gave no verdict."""
        return self._count("failed")

    @property
    def ended(self) -> int:
        """Number of pairs that the judges have finished: labelled, sent to people, or failed."""
        return self.labelled + self.escalated + self.failed

    @property
    def per_minute(self) -> float:
        """Average number of finished pairs per minute since the start."""
        elapsed_seconds = (timezone.now() - self.campaign.created_at).total_seconds()
        return self.ended / max(1.0, elapsed_seconds) * 60

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the remaining pairs at this speed; None until a pair is finished."""
        if not self.ended:
            return None
        return (self.pairs - self.ended) / self.per_minute * 60

    @property
    def provider_accounts(self) -> list[AccountUse]:
        """Provider accounts of the debaters and voters, with their states; offline judges have none."""
        return _account_uses((*self.debaters, *self.voters))

    @property
    def worker_problem(self) -> str:
        """Description of why a running campaign waits for a worker; "" if it does not wait."""
        if self.campaign.state != Campaign.State.RUNNING:
            return ""
        return notifications.describe_wait(self.campaign)

    @property
    def vote_rule(self) -> str:
        """Description of how many votes decide and which are samples of one model; "" without a panel."""
        campaign = self.campaign
        return describe_panel(campaign.policy, self.voters, campaign.majority, early_stop=campaign.early_stop)

    @property
    def calls(self) -> int:
        """Number of model calls."""
        return self._count("calls")

    @property
    def paid(self) -> Paid:
        """Cost of the campaign, with the number of calls whose cost is unknown."""
        return of_calls(
            self.counts.get("cost", 0.0),
            self.calls,
            unknown=self._count("calls_without_price"),
            assumed=self._count("calls_assumed"),
            assumed_usd=self.counts.get("cost_assumed", 0.0),
        )

    @property
    def answers_without_usage(self) -> int:
        """Number of answers that did not report their usage, so that budgets count an assumed cost for them."""
        return self._count("calls_assumed")

    @property
    def assumed_cost(self) -> str:
        """Cost that budgets count for the answers without usage, as text."""
        return format_cost(self.counts.get("cost_assumed", 0.0))

    @property
    def is_finished_cost_centre(self) -> bool:
        """Whether the campaign only bills the calls of another job (a run, answers or agents), and this job is over."""
        is_over = self.campaign.state in (Campaign.State.FINISHED, Campaign.State.CANCELLED)
        return self.campaign.kind == Campaign.Kind.COSTS and is_over

    @property
    def has_unconfirmed_batch(self) -> bool:
        """Whether some open batch was sent without a reply, so that the provider may or may not have accepted it."""
        return any(batch.is_unconfirmed for batch in self.open_batches)


def load_counters(campaigns: Sequence[int]) -> dict[int, dict[str, float]]:
    """Return for each of these campaigns its counters by key (judges.costs.counters)."""
    counts: dict[int, dict[str, float]] = {pk: {} for pk in campaigns}
    if not campaigns:
        return counts
    totals = Tally.objects.filter(campaign__in=campaigns).values_list("campaign", "key").annotate(total=Sum("value"))
    for campaign, key, total in totals:
        counts[campaign][key] = total
    return counts


def campaign_rows(collection: Collection, limit: int = 200) -> list[CampaignRow]:
    """Return a collection's newest campaigns, newest first, with open batches and judges. Six statements."""
    open_batches = Prefetch("batches", Batch.objects.filter(ended_at=None).order_by("pk"), to_attr="open_batches")
    campaigns = list(collection.campaigns.prefetch_related(open_batches).order_by("-pk")[:limit])
    campaign_ids = [campaign.pk for campaign in campaigns]
    counts = load_counters(campaign_ids)
    reports = judge_reports(campaign_ids) if campaign_ids else {}
    judge_ids = {pk for campaign in campaigns for pk in (*campaign.voters, *campaign.debaters)}
    judges = JudgeVersion.objects.in_bulk(judge_ids)
    return [
        CampaignRow(
            campaign,
            counts[campaign.pk],
            voters=tuple(judges[pk] for pk in campaign.voters if pk in judges),
            debaters=tuple(judges[pk] for pk in campaign.debaters if pk in judges),
            reports=tuple(reports.get(campaign.pk, ())),
            open_batches=tuple(campaign.open_batches),
        )
        for campaign in campaigns
    ]


def read_accounts(campaign: Campaign) -> list[AccountUse]:
    """Return the provider accounts of a campaign's debaters and voters, with their states."""
    return _account_uses(JudgeVersion.objects.filter(pk__in=[*campaign.debaters, *campaign.voters]))


def _account_uses(judges: Iterable[JudgeVersion]) -> list[AccountUse]:
    """Return each account that the judges call, by name; an empty list if Redis cannot be reached."""
    judges_by_account: dict[Account, list[int]] = {}
    for judge in judges:
        # Offline judges call no provider.
        if judge.provider != "offline":
            account = (judge.provider, judge.base_url, judge.api_key_env)
            judges_by_account.setdefault(account, []).append(judge.pk)
    if not judges_by_account:
        return []
    states = read_account_states(judges_by_account)
    return [AccountUse(state, tuple(judges_by_account[account])) for account, state in states.items()]


def silent_since(campaign: Campaign, judges: Sequence[int]) -> datetime | None:
    """Return when a campaign's calls to these judges began to fail; None if the last one did not fail."""
    calls = Attempt.objects.filter(campaign=campaign, judge__in=judges)
    last_answer = calls.exclude(outcome=Attempt.Outcome.ERROR).order_by("-pk").values_list("pk", flat=True).first()
    errors_since = calls.filter(outcome=Attempt.Outcome.ERROR, pk__gt=last_answer or 0)
    return errors_since.order_by("pk").values_list("created_at", flat=True).first()


@dataclass(frozen=True, slots=True)
class PeopleEstimate:
    """The work that a campaign leaves to people, and the time of its model calls."""

    share: float  # Share of the campaign's pairs that people judge.
    share_basis: str  # "policy" or "collection": earlier campaigns here; "rule": fixed by the policy; or "paper".
    measured_pairs: int  # Pairs of the earlier campaigns; 0 for "rule" and "paper".
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
    unchecked_judges: Sequence[SelfCheckState]  # Judges of a large campaign that have passed no self-check.


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
    judging = Campaign.judging.filter(collection=collection).exclude(policy=Policy.HUMAN).order_by("-pk")
    earlier = list(judging[:MAX_EARLIER_CAMPAIGNS])
    expected = _expect_share(earlier, configuration)
    pairs_to_people = round(pairs * expected.share)
    judgments_per_pair = collection.overlap
    if configuration.policy == Policy.HUMAN:
        judgments_per_pair = max(VOTES_OF_HUMAN, collection.overlap)
    judgments = pairs_to_people * judgments_per_pair
    median = median_seconds(collection)
    seconds_per_judgment = DREAM_JUDGMENT_SECONDS if median is None else median
    hours = judgments * seconds_per_judgment / 3600

    # 2. The time of the models: for one pair, for all pairs in parallel, or by the rate limit, whichever is longest.
    similar = next((campaign for campaign in earlier if campaign.policy == configuration.policy), None)
    latency = latency_medians(similar) if similar else None
    pair_seconds = latency["wall"] / 1000 if latency else DREAM_DEBATE_SECONDS
    parallel_seconds = pairs * pair_seconds / settings.PAIRS_IN_FLIGHT
    rate_limit_seconds = _rate_limit_seconds(configuration, calls)

    return PeopleEstimate(
        share=expected.share,
        share_basis=expected.basis,
        measured_pairs=expected.measured_pairs,
        pairs=pairs_to_people,
        judgments=judgments,
        seconds_per_judgment=seconds_per_judgment,
        is_timed=median is not None,
        hours=hours,
        cost=None if collection.hourly_rate is None else hours * collection.hourly_rate,
        model_seconds=max(pair_seconds, parallel_seconds, rate_limit_seconds),
        is_model_timed=latency is not None,
    )


def _rate_limit_seconds(configuration: Configuration, calls: float) -> float:
    """Return the seconds that the strictest rate limit allows for the calls, shared evenly among the judges."""
    limits = [judge.requests_per_minute for judge in configuration.judges if judge.requests_per_minute]
    if not limits:
        return 0.0
    calls_per_judge = calls / len(configuration.judges)
    return calls_per_judge / min(limits) * 60


class ExpectedShare(NamedTuple):
    """The share of pairs that people will judge; PeopleEstimate explains the fields."""

    share: float
    basis: str
    measured_pairs: int


def _expect_share(earlier: Sequence[Campaign], configuration: Configuration) -> ExpectedShare:
    """Return the share of a campaign's pairs that people will judge, from the earlier campaigns if possible."""
    if configuration.policy == Policy.HUMAN:
        return ExpectedShare(1.0, "rule", 0)
    counts = load_counters([campaign.pk for campaign in earlier])
    rows = [CampaignRow(campaign, counts[campaign.pk]) for campaign in earlier]
    rows_of_policy = [row for row in rows if row.campaign.policy == configuration.policy]
    finished_pairs = sum(row.ended for row in rows_of_policy)
    if finished_pairs >= MIN_MEASURED_PAIRS:
        return ExpectedShare(sum(row.escalated for row in rows_of_policy) / finished_pairs, "policy", finished_pairs)
    # Campaigns of other policies say nothing about a single judge, which sends no pair to people.
    if configuration.policy == Policy.SINGLE:
        return ExpectedShare(0.0, "rule", 0)
    finished_pairs = sum(row.ended for row in rows)
    if finished_pairs >= MIN_MEASURED_PAIRS:
        return ExpectedShare(sum(row.escalated for row in rows) / finished_pairs, "collection", finished_pairs)
    return ExpectedShare(DREAM_ESCALATED_SHARE, "paper", 0)
