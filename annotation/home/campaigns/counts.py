"""The counters of campaigns as named counts (judges.costs.counters explains the keys of the counters)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Sum

from judges.costs.accounting import Paid, format_cost, of_calls
from judges.models import Tally

Counters = Mapping[str, float]  # The counters of one campaign, by key.


@dataclass(frozen=True, slots=True)
class CampaignCounts:
    """Counts of a campaign's pairs and model calls."""

    pairs: int
    labelled: int  # Pairs that the policy labelled, or for which evidence was written.
    escalated: int  # Pairs that went to people for a label. The pairs of label audits already have one.
    failed: int  # Pairs for which the judges gave no verdict.
    calls: int
    calls_without_cost: int  # Calls whose cost is unknown.
    answers_without_usage: int  # Answers that did not report their usage, so that budgets count an assumed cost.
    known_cost: float  # USD.
    assumed_cost: float  # USD that budgets count for the answers without usage.

    @property
    def finished(self) -> int:
        """Number of pairs that the judges have finished: labelled, sent to people, or failed."""
        return self.labelled + self.escalated + self.failed

    @property
    def paid(self) -> Paid:
        """Cost of the calls, with the number of calls whose cost is unknown."""
        return of_calls(
            self.known_cost,
            self.calls,
            unknown=self.calls_without_cost,
            assumed=self.answers_without_usage,
            assumed_usd=self.assumed_cost,
        )

    @property
    def assumed_cost_text(self) -> str:
        """The assumed cost with its currency."""
        return format_cost(self.assumed_cost)


def load_raw_counters(campaign_ids: Sequence[int]) -> dict[int, dict[str, float]]:
    """Return the counters of each of these campaigns, by the id of the campaign."""
    counters: dict[int, dict[str, float]] = {campaign_id: {} for campaign_id in campaign_ids}
    if not campaign_ids:
        return counters
    totals = Tally.objects.filter(campaign__in=campaign_ids).values_list("campaign", "key").annotate(total=Sum("value"))
    for campaign_id, key, total in totals:
        counters[campaign_id][key] = total
    return counters


def name_counts(counters: Counters) -> CampaignCounts:
    """Return the counts of a campaign from its counters."""

    def counter(key: str) -> int:
        return int(counters.get(key, 0))

    def sum_kinds(name: str) -> int:
        """Return the sum of the counters `name:<kind>`, such as those of all reasons for "escalated"."""
        return int(sum(value for key, value in counters.items() if key.startswith(f"{name}:")))

    return CampaignCounts(
        pairs=counter("pairs"),
        labelled=sum_kinds("labelled") + counter("written"),
        escalated=sum_kinds("escalated") - counter("escalated:audit"),
        failed=counter("failed"),
        calls=counter("calls"),
        calls_without_cost=counter("calls_without_price"),
        answers_without_usage=counter("calls_assumed"),
        known_cost=counters.get("cost", 0.0),
        assumed_cost=counters.get("cost_assumed", 0.0),
    )
