"""What is known of a collection's campaigns: their counters, and what a start would come to.

What a start leaves to people is forecast from this collection's earlier campaigns where there are
any, else from what DREAM measured (B.2, table 11).
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

# DREAM, table 11: pairs that two debaters leave to people, and a person's and the debate's seconds for a pair.
ESCALATED, PERSON_SECONDS, DEBATE_SECONDS = 0.035, 30.0, 4.3
LEAST = 20  # Pairs of earlier campaigns from which their share is taken.
NEWEST = 20  # Earlier campaigns that are looked at.
Policy = Campaign.Policy


@dataclass(frozen=True)
class CampaignRow:
    """A campaign in the list, with its counters."""

    campaign: Campaign
    counts: dict[str, float]
    # In the order of the panel; a judge stands there once for each of its samples.
    voters: tuple[JudgeVersion, ...] = ()
    debaters: tuple[JudgeVersion, ...] = ()
    reports: tuple[JudgeReport, ...] = ()

    @property
    def judge_notes(self) -> list[str]:
        """Say which judges' answers were lost and what helps, and which other models answered."""
        return describe_reports(self.reports, other_models(self.counts))

    def _sum(self, prefix: str) -> int:
        return int(sum(value for key, value in self.counts.items() if key.startswith(prefix)))

    @property
    def pairs(self) -> int:
        return self._sum("pairs")

    @property
    def labelled(self) -> int:
        """Pairs that the policy labelled, or that a campaign that writes targets wrote."""
        return self._sum("labelled:") + self._sum("written")

    @property
    def escalated(self) -> int:
        """Pairs that went to people; audits are labelled pairs and do not belong."""
        return self._sum("escalated:") - self._sum("escalated:audit")

    @property
    def failed(self) -> int:
        return self._sum("failed")

    @property
    def ended(self) -> int:
        """Pairs that the judges are done with: labelled, sent to people, or failed."""
        return self.labelled + self.escalated + self.failed

    @property
    def per_minute(self) -> float:
        """Pairs in a minute, on average since it was started."""
        return self.ended / max(1.0, (timezone.now() - self.campaign.created_at).total_seconds()) * 60

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the other pairs take at this speed; None before the first has ended."""
        return (self.pairs - self.ended) / self.per_minute * 60 if self.ended else None

    @property
    def accounts(self) -> list[dict[str, Any]]:
        """Return the states of debaters' and voters' accounts; offline judges have none."""
        return _account_states((*self.debaters, *self.voters))

    @property
    def worker_problem(self) -> str:
        """Say for what it waits while no worker is at it; "" where one is."""
        return notifications.describe_wait(self.campaign) if self.campaign.state == Campaign.State.RUNNING else ""

    @property
    def counted(self) -> str:
        """Describe how many votes decide, and which of them are samples of one model; "" where no panel votes."""
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
        """Answers that did not say what they used, and the cost that budgets count for them."""
        return self._sum("calls_assumed"), format_cost(self.counts.get("cost_assumed", 0.0))

    @property
    def is_closed_account(self) -> bool:
        """Return whether the campaign was only a cost centre (of a run, answers or agents) whose work has ended."""
        over = self.campaign.state in (Campaign.State.FINISHED, Campaign.State.CANCELLED)
        return self.campaign.kind == Campaign.Kind.COSTS and over

    @property
    def has_unconfirmed_batch(self) -> bool:
        """Whether the campaign has a batch of which it is unknown whether the provider began it."""
        return any(batch.is_unconfirmed for batch in getattr(self.campaign, "out", []))


def load_counters(campaigns: list[int]) -> dict[int, dict[str, float]]:
    """The counters of campaigns by key (judges.campaigns.counters)."""
    counts: dict[int, dict[str, float]] = {pk: {} for pk in campaigns}
    rows = Tally.objects.filter(campaign__in=campaigns).values_list("campaign", "key").annotate(total=Sum("value"))
    for campaign, key, total in rows if campaigns else []:
        counts[campaign][key] = total
    return counts


def campaign_rows(collection: Collection, limit: int = 200) -> list[CampaignRow]:
    """A collection's newest campaigns with batches that are out and voters, in six statements."""
    out = Prefetch("batches", Batch.objects.filter(ended_at=None).order_by("pk"), to_attr="out")
    found = list(collection.campaigns.prefetch_related(out).order_by("-pk")[:limit])
    counts = load_counters([campaign.pk for campaign in found])
    reports = judge_reports([campaign.pk for campaign in found]) if found else {}
    judges = JudgeVersion.objects.in_bulk({pk for campaign in found for pk in (*campaign.voters, *campaign.debaters)})
    return [
        CampaignRow(
            campaign,
            counts[campaign.pk],
            tuple(judges[pk] for pk in campaign.voters if pk in judges),
            tuple(judges[pk] for pk in campaign.debaters if pk in judges),
            tuple(reports.get(campaign.pk, ())),
        )
        for campaign in found
    ]


def read_accounts(campaign: Campaign) -> list[dict[str, Any]]:
    """Return the states of the provider accounts that a campaign's debaters and voters use."""
    return _account_states(JudgeVersion.objects.filter(pk__in=[*campaign.debaters, *campaign.voters]))


def _account_states(members: Iterable[JudgeVersion]) -> list[dict[str, Any]]:
    """Return each account's state with the `judges` that use it; offline judges have none, nor has Redis while away."""
    judges: dict[tuple[str, str, str], list[int]] = {}
    for judge in members:
        if judge.provider != "offline":
            judges.setdefault((judge.provider, judge.base_url, judge.api_key_env), []).append(judge.pk)
    states = read_account_states(judges) if judges else []
    return [state | {"judges": judges[account]} for account, state in zip(sorted(judges), states, strict=False)]


def silent_since(campaign: Campaign, judges: Sequence[int]) -> datetime | None:
    """Return when a campaign's calls to these judges began to fail; None if answered."""
    calls = Attempt.objects.filter(campaign=campaign, judge__in=judges)
    answered = calls.exclude(outcome=Attempt.Outcome.ERROR).order_by("-pk").values_list("pk", flat=True).first()
    failed = calls.filter(outcome=Attempt.Outcome.ERROR, pk__gt=answered or 0)
    return failed.order_by("pk").values_list("created_at", flat=True).first()


def estimate_campaign(actor: Actor, collection: Collection, options: CampaignOptions) -> dict[str, Any]:
    """Estimate calls, money and people's hours of a campaign; nothing starts."""
    wanted, caps = configuration_of(options), collection_budget(collection)
    pairs = pairs_to_judge(collection, wanted, limit=options.limit, again=options.again)
    estimate = forecast_judging(collection, wanted, limit=options.limit, again=options.again, fresh=options.fresh)
    return {
        "wanted": wanted,
        "caps": caps,
        "short": estimate is not None and caps.is_short_for(estimate.known.expected),
        "pairs": pairs,
        "estimate": estimate,
        "people": estimate_people(collection, wanted, pairs, estimate.calls.expected if estimate else 0.0),
        "unchecked": unchecked_judges(collection, wanted.judges) if pairs >= LARGE else (),
    }


def estimate_people(collection: Collection, wanted: Configuration, pairs: int, calls: float) -> dict[str, Any]:
    """Estimate what so many pairs leave to people under this configuration, for which models get so many calls.

    `seconds`: of a judgment, the median of those here where it is `timed`, else the paper's.
    `basis`: where the share comes from, "policy" or "collection" (earlier campaigns here,
    `measured` pairs), "rule" or "paper". `cost`: USD, None without a rate. `models_timed`: the time
    of the models is from an earlier campaign here.
    """
    judging = Campaign.judging.filter(collection=collection).exclude(policy=Policy.HUMAN).order_by("-pk")
    earlier = list(judging[:NEWEST])
    share, basis, measured = _expected_share(earlier, wanted)
    each = max(VOTES_OF_HUMAN, collection.overlap) if wanted.policy == Policy.HUMAN else collection.overlap
    seconds = median_seconds(collection)
    same = next((one for one in earlier if one.policy == wanted.policy), None)
    latency = latency_medians(same) if same else None
    come = round(pairs * share)
    model_seconds = latency["wall"] / 1000 if latency else DEBATE_SECONDS
    # So many pairs at once, and at least as long as the slowest account's limit asks for: calls are shared evenly.
    limits = [judge.requests_per_minute for judge in wanted.judges if judge.requests_per_minute]
    paced = calls / max(1, len(wanted.judges)) / min(limits) * 60 if limits else 0.0
    each_seconds = PERSON_SECONDS if seconds is None else seconds
    hours = come * each * each_seconds / 3600
    return {
        "share": share,
        "share_text": f"{share:.1%}",
        "pairs": come,
        "judgments": come * each,
        "seconds": each_seconds,
        "hours": hours,
        "cost": None if collection.hourly_rate is None else hours * collection.hourly_rate,
        "basis": basis,
        "measured": measured,
        "timed": seconds is not None,
        "models_seconds": max(model_seconds, pairs * model_seconds / settings.PAIRS_IN_FLIGHT, paced),
        "models_timed": latency is not None,
    }


def _expected_share(earlier: Sequence[Campaign], wanted: Configuration) -> tuple[float, str, int]:
    """Return the share of pairs that come to people, where it is from, and the pairs that it was measured on."""
    if wanted.policy == Policy.HUMAN:
        return 1.0, "rule", 0
    counts = load_counters([one.pk for one in earlier])
    rows = [CampaignRow(one, counts[one.pk]) for one in earlier]
    for basis, found in (
        ("policy", [one for one in rows if one.campaign.policy == wanted.policy]),
        ("collection", rows),
    ):
        ended = sum(one.ended for one in found)
        # A single judge's campaigns say nothing of the others: they send no pair to people.
        if ended >= LEAST and (basis == "policy" or wanted.policy != Policy.SINGLE):
            return sum(one.escalated for one in found) / ended, basis, ended
    return (0.0, "rule", 0) if wanted.policy == Policy.SINGLE else (ESCALATED, "paper", 0)
