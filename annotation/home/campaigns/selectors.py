"""A collection's campaigns with their counters, and the estimate of a new one.

The share of pairs that people will judge is forecast from this collection's earlier campaigns where
there are any, else from DREAM's measurements (B.2, table 11).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Prefetch, Sum
from django.utils import timezone

from actions.services import Actor
from annotation.quality.panels.self_checks import LARGE, unchecked_judges
from annotation.work.queue.judging_time import median_seconds
from corpus.models import Collection
from judges.campaigns.configurations import Configuration, configuration_of, describe_panel
from judges.campaigns.forecasts import forecast_judging
from judges.campaigns.judge_reports import JudgeReport, describe_reports, judge_reports, other_models
from judges.campaigns.lifecycle import pairs_to_judge
from judges.campaigns.options import CampaignOptions
from judges.campaigns.selectors import latency_medians
from judges.costs.accounting import Paid, format_cost, of_calls
from judges.costs.collection_budgets import collection_budget
from judges.domain.routing import VOTES_OF_HUMAN
from judges.engine import notifications
from judges.engine.account_states import read_account_states
from judges.models import Attempt, Campaign, JudgeVersion, Tally
from judges.models.batches import Batch

# DREAM, table 11: the share of pairs that two debaters leave to people, and seconds per pair of a person and a debate.
ESCALATED, PERSON_SECONDS, DEBATE_SECONDS = 0.035, 30.0, 4.3
LEAST = 20  # Pairs of earlier campaigns from which a share is forecast.
NEWEST = 20  # Earlier campaigns that are considered.
Policy = Campaign.Policy


@dataclass(frozen=True)
class CampaignRow:
    """A campaign in the list, with its counters."""

    campaign: Campaign
    counts: dict[str, float]
    # In the order of the panel; a judge occurs once for each of its samples.
    voters: tuple[JudgeVersion, ...] = ()
    debaters: tuple[JudgeVersion, ...] = ()
    reports: tuple[JudgeReport, ...] = ()

    @property
    def judge_notes(self) -> list[str]:
        """Describe judges with unusable answers and what helps, and other models that answered."""
        return describe_reports(self.reports, other_models(self.counts))

    def _sum(self, prefix: str) -> int:
        return int(sum(value for key, value in self.counts.items() if key.startswith(prefix)))

    @property
    def pairs(self) -> int:
        return self._sum("pairs")

    @property
    def labelled(self) -> int:
        """Pairs that the policy labelled, or for which evidence was written."""
        return self._sum("labelled:") + self._sum("written")

    @property
    def escalated(self) -> int:
        """Pairs that went to people, without label audits, whose pairs are labelled."""
        return self._sum("escalated:") - self._sum("escalated:audit")

    @property
    def failed(self) -> int:
        return self._sum("failed")

    @property
    def ended(self) -> int:
        """Pairs that the judges have finished: labelled, sent to people, or failed."""
        return self.labelled + self.escalated + self.failed

    @property
    def per_minute(self) -> float:
        """Average number of pairs per minute since the start."""
        return self.ended / max(1.0, (timezone.now() - self.campaign.created_at).total_seconds()) * 60

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the remaining pairs at this speed; None before the first is finished."""
        return (self.pairs - self.ended) / self.per_minute * 60 if self.ended else None

    @property
    def accounts(self) -> list[dict[str, Any]]:
        """Return the states of debaters' and voters' accounts; offline judges have none."""
        return _account_states((*self.debaters, *self.voters))

    @property
    def worker_problem(self) -> str:
        """Describe why a running campaign waits for a worker; "" where it does not."""
        return notifications.describe_wait(self.campaign) if self.campaign.state == Campaign.State.RUNNING else ""

    @property
    def counted(self) -> str:
        """Describe how many votes decide and which are samples of one model; "" without a panel."""
        campaign = self.campaign
        return describe_panel(campaign.policy, self.voters, campaign.majority, early_stop=campaign.early_stop)

    @property
    def calls(self) -> int:
        return int(self.counts.get("calls", 0))

    @property
    def paid(self) -> Paid:
        """Cost of the campaign, with the number of calls whose cost is unknown."""
        keys = ("calls", "calls_without_price", "calls_assumed")
        calls, unknown, assumed = (int(self.counts.get(key, 0)) for key in keys)
        return of_calls(self.counts.get("cost", 0.0), calls, unknown, assumed, self.counts.get("cost_assumed", 0.0))

    @property
    def assumed(self) -> tuple[int, str]:
        """Number of answers without usage figures, and the cost that budgets count for them."""
        return self._sum("calls_assumed"), format_cost(self.counts.get("cost_assumed", 0.0))

    @property
    def is_closed_account(self) -> bool:
        """Return whether the campaign is the finished cost centre of another job (a run, answers or agents)."""
        is_over = self.campaign.state in (Campaign.State.FINISHED, Campaign.State.CANCELLED)
        return self.campaign.kind == Campaign.Kind.COSTS and is_over

    @property
    def has_unconfirmed_batch(self) -> bool:
        """Return whether it is unknown of some batch if the provider has accepted it."""
        return any(batch.is_unconfirmed for batch in getattr(self.campaign, "out", []))


def load_counters(campaigns: list[int]) -> dict[int, dict[str, float]]:
    """Return the counters of campaigns by key (judges.costs.counters)."""
    counts: dict[int, dict[str, float]] = {pk: {} for pk in campaigns}
    rows = Tally.objects.filter(campaign__in=campaigns).values_list("campaign", "key").annotate(total=Sum("value"))
    for campaign, key, total in rows if campaigns else []:
        counts[campaign][key] = total
    return counts


def campaign_rows(collection: Collection, limit: int = 200) -> list[CampaignRow]:
    """Return a collection's newest campaigns with their open batches and judges, in six statements."""
    out = Prefetch("batches", Batch.objects.filter(ended_at=None).order_by("pk"), to_attr="out")
    campaigns = list(collection.campaigns.prefetch_related(out).order_by("-pk")[:limit])
    counts = load_counters([campaign.pk for campaign in campaigns])
    reports = judge_reports([campaign.pk for campaign in campaigns]) if campaigns else {}
    members = {pk for campaign in campaigns for pk in (*campaign.voters, *campaign.debaters)}
    judges = JudgeVersion.objects.in_bulk(members)
    return [
        CampaignRow(
            campaign,
            counts[campaign.pk],
            tuple(judges[pk] for pk in campaign.voters if pk in judges),
            tuple(judges[pk] for pk in campaign.debaters if pk in judges),
            tuple(reports.get(campaign.pk, ())),
        )
        for campaign in campaigns
    ]


def read_accounts(campaign: Campaign) -> list[dict[str, Any]]:
    """Return the states of the provider accounts that a campaign's debaters and voters use."""
    return _account_states(JudgeVersion.objects.filter(pk__in=[*campaign.debaters, *campaign.voters]))


def _account_states(members: Iterable[JudgeVersion]) -> list[dict[str, Any]]:
    """Return each account's state with its `judges`, without offline judges; empty while Redis is not reachable."""
    judges: dict[tuple[str, str, str], list[int]] = {}
    for judge in members:
        if judge.provider != "offline":
            judges.setdefault((judge.provider, judge.base_url, judge.api_key_env), []).append(judge.pk)
    states = read_account_states(judges) if judges else []
    return [state | {"judges": judges[account]} for account, state in zip(sorted(judges), states, strict=False)]


def silent_since(campaign: Campaign, judges: Sequence[int]) -> datetime | None:
    """Return when a campaign's calls to these judges began to fail; None if the last one did not."""
    calls = Attempt.objects.filter(campaign=campaign, judge__in=judges)
    answered = calls.exclude(outcome=Attempt.Outcome.ERROR).order_by("-pk").values_list("pk", flat=True).first()
    failed = calls.filter(outcome=Attempt.Outcome.ERROR, pk__gt=answered or 0)
    return failed.order_by("pk").values_list("created_at", flat=True).first()


def estimate_campaign(actor: Actor, collection: Collection, options: CampaignOptions) -> dict[str, Any]:
    """Estimate calls, money and people's hours of a campaign without starting it."""
    configuration, budget = configuration_of(options), collection_budget(collection)
    pairs = pairs_to_judge(collection, configuration, limit=options.limit, again=options.again)
    estimate = forecast_judging(
        collection, configuration, limit=options.limit, again=options.again, fresh=options.fresh
    )
    return {
        "wanted": configuration,
        "caps": budget,
        "short": estimate is not None and budget.is_short_for(estimate.known.expected),
        "pairs": pairs,
        "estimate": estimate,
        "people": estimate_people(collection, configuration, pairs, estimate.calls.expected if estimate else 0.0),
        "unchecked": unchecked_judges(collection, configuration.judges) if pairs >= LARGE else (),
    }


def estimate_people(collection: Collection, configuration: Configuration, pairs: int, calls: float) -> dict[str, Any]:
    """Estimate the work that a campaign on so many pairs leaves to people, and the time of its model calls.

    `seconds`: of one judgment, the median of this collection's where `timed`, else the paper's.
    `basis`: where the share comes from, "policy" or "collection" (earlier campaigns here, of
    `measured` pairs), "rule" or "paper". `cost`: USD, None without an hourly rate. `models_timed`:
    the models' seconds are from an earlier campaign here.
    """
    judging = Campaign.judging.filter(collection=collection).exclude(policy=Policy.HUMAN).order_by("-pk")
    earlier = list(judging[:NEWEST])
    share, basis, measured = _expected_share(earlier, configuration)
    votes = max(VOTES_OF_HUMAN, collection.overlap) if configuration.policy == Policy.HUMAN else collection.overlap
    seconds = median_seconds(collection)
    similar = next((campaign for campaign in earlier if campaign.policy == configuration.policy), None)
    latency = latency_medians(similar) if similar else None
    pairs_to_people = round(pairs * share)
    model_seconds = latency["wall"] / 1000 if latency else DEBATE_SECONDS
    # At least the time that the slowest account's rate limit asks for, with calls shared evenly among judges.
    limits = [judge.requests_per_minute for judge in configuration.judges if judge.requests_per_minute]
    paced = calls / max(1, len(configuration.judges)) / min(limits) * 60 if limits else 0.0
    judgment_seconds = PERSON_SECONDS if seconds is None else seconds
    hours = pairs_to_people * votes * judgment_seconds / 3600
    return {
        "share": share,
        "share_text": f"{share:.1%}",
        "pairs": pairs_to_people,
        "judgments": pairs_to_people * votes,
        "seconds": judgment_seconds,
        "hours": hours,
        "cost": None if collection.hourly_rate is None else hours * collection.hourly_rate,
        "basis": basis,
        "measured": measured,
        "timed": seconds is not None,
        "models_seconds": max(model_seconds, pairs * model_seconds / settings.PAIRS_IN_FLIGHT, paced),
        "models_timed": latency is not None,
    }


def _expected_share(earlier: Sequence[Campaign], configuration: Configuration) -> tuple[float, str, int]:
    """Return the share of pairs that people will judge, its basis, and the number of pairs on which it was measured."""
    if configuration.policy == Policy.HUMAN:
        return 1.0, "rule", 0
    counts = load_counters([campaign.pk for campaign in earlier])
    rows = [CampaignRow(campaign, counts[campaign.pk]) for campaign in earlier]
    for basis, similar in (
        ("policy", [row for row in rows if row.campaign.policy == configuration.policy]),
        ("collection", rows),
    ):
        finished = sum(row.ended for row in similar)
        # Campaigns of other policies say nothing about a single judge, which sends no pair to people.
        if finished >= LEAST and (basis == "policy" or configuration.policy != Policy.SINGLE):
            return sum(row.escalated for row in similar) / finished, basis, finished
    return (0.0, "rule", 0) if configuration.policy == Policy.SINGLE else (ESCALATED, "paper", 0)
