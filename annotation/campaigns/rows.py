"""The campaigns of a collection with what was counted of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, Sum
from django.utils import timezone

from corpus.models import Collection
from judges.campaigns.configurations import describe_panel
from judges.campaigns.judge_reports import JudgeReport, describe_reports, judge_reports, other_models
from judges.costs.accounting import Paid, format_cost, of_calls
from judges.engine import notifications
from judges.engine.account_states import read_account_states
from judges.models import Attempt, Campaign, JudgeVersion, Tally
from judges.models.batches import Batch


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
        """Return the states of the provider accounts that debaters and voters use; offline judges have none."""
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
        """Answers that did not say what they used, and the cost that counts against the budget for them."""
        return self._sum("calls_assumed"), format_cost(self.counts.get("cost_assumed", 0.0))

    @property
    def is_closed_account(self) -> bool:
        """Return whether the campaign was only a cost centre (of a run, answers or agents) whose work has ended."""
        over = self.campaign.state in (Campaign.State.FINISHED, Campaign.State.CANCELLED)
        return self.campaign.kind == Campaign.Kind.COSTS and over

    @property
    def has_unconfirmed_batch(self) -> bool:
        """Return whether the campaign has a batch of which it is unknown whether the provider began it."""
        return any(batch.is_unconfirmed for batch in getattr(self.campaign, "out", []))


def load_counters(campaigns: list[int]) -> dict[int, dict[str, float]]:
    """The counters of campaigns by key (judges.campaigns.counters)."""
    counts: dict[int, dict[str, float]] = {pk: {} for pk in campaigns}
    rows = Tally.objects.filter(campaign__in=campaigns).values_list("campaign", "key").annotate(total=Sum("value"))
    for campaign, key, total in rows if campaigns else []:
        counts[campaign][key] = total
    return counts


def campaign_rows(collection: Collection, limit: int = 200) -> list[CampaignRow]:
    """The newest campaigns of a collection with the batches that are out and who votes, in six statements."""
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
    """Return when the calls of a campaign to these judges began to fail; None where the newest was answered."""
    calls = Attempt.objects.filter(campaign=campaign, judge__in=judges)
    answered = calls.exclude(outcome=Attempt.Outcome.ERROR).order_by("-pk").values_list("pk", flat=True).first()
    failed = calls.filter(outcome=Attempt.Outcome.ERROR, pk__gt=answered or 0)
    return failed.order_by("pk").values_list("created_at", flat=True).first()
