"""The ledger of a campaign: calls and costs by judge, round and outcome, from its counters (judges.models.costs)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from judges.costs.accounting import Paid, of_calls
from judges.models import Campaign, JudgeCall
from judges.records import CONVERSATIONS
from store.sql import fetch_rows

ENTRIES = """
SELECT sum(l.calls)::bigint, sum(l.calls_cached)::bigint, sum(l.calls_without_price)::bigint, sum(l.tokens_in)::bigint,
    sum(l.tokens_cached)::bigint, sum(l.tokens_out)::bigint, sum(l.cost), sum(l.calls_assumed)::bigint,
    sum(l.cost_assumed), sum(l.tokens_written)::bigint, sum(l.tokens_reasoning)::bigint,
    v.name || '@' || v.version, v.model, l.role, l.round, l.outcome
FROM judges_ledger l JOIN judges_judgeversion v ON v.id = l.judge_id
WHERE l.campaign_id = %(campaign)s GROUP BY v.id, l.role, l.round, l.outcome
"""

DAYS = """
SELECT day, sum(calls)::bigint, sum(cost), sum(calls_without_price)::bigint, sum(calls_assumed)::bigint,
    sum(cost_assumed)
FROM judges_ledger WHERE campaign_id = %(campaign)s GROUP BY day ORDER BY day
"""

PAIRS = """
SELECT w.state, w.reason, count(*), COALESCE(sum(a.cost), 0), COALESCE(sum(a.calls), 0)::bigint,
    COALESCE(sum(a.unpriced), 0)::bigint, COALESCE(sum(a.assumed), 0)::bigint, COALESCE(sum(a.cost_assumed), 0)
FROM judges_work w LEFT JOIN (
    SELECT pair_id, count(*) FILTER (WHERE NOT cached) AS calls, count(*) FILTER (WHERE cost IS NULL) AS unpriced,
        count(*) FILTER (WHERE assumed > 0) AS assumed, sum(cost) AS cost, sum(assumed) AS cost_assumed
    FROM judges_attempt WHERE campaign_id = %(campaign)s GROUP BY pair_id) a ON a.pair_id = w.pair_id
WHERE w.campaign_id = %(campaign)s GROUP BY w.state, w.reason ORDER BY w.state, w.reason
"""

FEW_CALLS = 200_000  # Pages read the attempts of a campaign only up to this number of calls; the command always does.

# In the order of the ledger, which is that of a pair's judging. The turns of both sides are one step.
STEPS: dict[str, Any] = {
    "filter": gettext_noop("filter"),
    "debate": gettext_noop("debate, round %(round)s"),
    "adjudicate": gettext_noop("adjudicating judge"),
    "vote": gettext_noop("votes"),
    "generation": gettext_noop("vote generations"),
    "check": gettext_noop("checks"),
    "write": gettext_noop("writing"),
    "entity": gettext_noop("measuring: entities"),
    "measure": gettext_noop("measuring: scores"),
    "rewrite": gettext_noop("query rewriting"),
    "reason": gettext_noop("reasoning about queries"),
    "embed": gettext_noop("vectors"),
    "rank": gettext_noop("reranking"),
    "web": gettext_noop("web search"),
    **{role.value: role.label for role in JudgeCall.Role if role in CONVERSATIONS},
}
PLACES = {
    "labelled": gettext_noop("labelled"),
    "escalated": gettext_noop("to people"),
    "failed": gettext_noop("failed"),
    "pending": gettext_noop("in progress"),
    "running": gettext_noop("in progress"),
}


@dataclass(frozen=True, slots=True)
class LedgerCounts:
    """Sums of calls, tokens and USD. Input tokens include those cached and written, output tokens the reasoning."""

    calls: int
    cached: int
    unpriced: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    cost: float
    # Calls among the unpriced that can have cost `cost_assumed` at most.
    assumed: int
    cost_assumed: float
    tokens_written: int  # To the provider's cache.
    tokens_reasoning: int

    @property
    def paid(self) -> Paid:
        return of_calls(self.cost, self.calls, self.unpriced, self.assumed, self.cost_assumed)


@dataclass(frozen=True, slots=True)
class LedgerRow(LedgerCounts):
    """Calls of one judge in one role, round and outcome."""

    judge: str  # With its version.
    model: str
    role: str
    round: int
    outcome: str

    @property
    def step(self) -> str:
        """The kind of call in words: "debate, round 2", "votes"."""
        words = STEPS[self._step_key]
        return (_(words) if isinstance(words, str) else words) % {"round": self.round}

    @property
    def place(self) -> tuple[int, int, str, str]:
        key = self._step_key
        return (list(STEPS).index(key), self.round if key == "debate" else 0, self.judge, self.outcome)

    @property
    def _step_key(self) -> str:
        return "debate" if self.role in ("for", "against") else self.role


@dataclass(frozen=True, slots=True)
class Sum(LedgerCounts):
    """Sums of several rows under a name; `useful` calls brought a verdict or text."""

    name: str
    useful: int

    @property
    def per_call(self) -> float | None:
        """Mean cost of the calls of known cost, in USD; None if there is none."""
        priced = self.calls - self.unpriced
        return self.cost / priced if priced > 0 else None


def ledger_rows(campaign: Campaign) -> list[LedgerRow]:
    """Return the ledger, in the order in which a pair is judged. One statement."""
    rows = fetch_rows(ENTRIES, campaign=campaign.pk)
    return sorted((LedgerRow(*row) for row in rows), key=lambda entry: entry.place)


def sum_by(rows: Iterable[LedgerRow], name: Callable[[LedgerRow], str]) -> list[Sum]:
    """Return sums by name, in the order of the names' first rows."""
    groups: dict[str, list[LedgerRow]] = {}
    for entry in rows:
        groups.setdefault(name(entry), []).append(entry)
    return [sum_rows(key, group) for key, group in groups.items()]


def sum_rows(name: str, group: Sequence[LedgerRow]) -> Sum:
    useful = sum(entry.calls for entry in group if entry.outcome == "labelled")
    counts = {column.name: sum(getattr(entry, column.name) for entry in group) for column in fields(LedgerCounts)}
    return Sum(**counts, name=name, useful=useful)


def daily_costs(campaign: Campaign) -> list[dict[str, Any]]:
    """Return each UTC day with its calls and their cost. One statement."""
    rows = fetch_rows(DAYS, campaign=campaign.pk)
    return [{"day": day, "calls": calls, "paid": of_calls(cost, calls, *rest)} for day, calls, cost, *rest in rows]


def costs_by_outcome(campaign: Campaign) -> list[dict[str, Any]]:
    """Return each outcome with its pairs, calls and their cost. Reads every attempt."""
    groups: dict[str, list[tuple[float, ...]]] = {}
    for state, reason, *numbers in fetch_rows(PAIRS, campaign=campaign.pk):
        name = _(PLACES[state]) + (f": {_(reason)}" if state == "escalated" and reason else "")
        groups.setdefault(name, []).append(tuple(numbers))
    outcomes = []
    for name, rows in groups.items():
        pairs, cost, calls, unpriced, assumed, most = (sum(column) for column in zip(*rows, strict=True))
        paid = of_calls(cost, int(calls), int(unpriced), int(assumed), most)
        outcomes.append({"name": name, "pairs": int(pairs), "calls": int(calls), "paid": paid})
    return outcomes
