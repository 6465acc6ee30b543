"""What a run took: seconds, tokens and money, summed over its queries (SPEC S10: each system records them)."""

from typing import Any

from django.db import connection

from benchmark.models import Run
from judges.campaigns import counters
from judges.costs.accounting import Paid, of_calls

SQL = """
SELECT count(*), COALESCE(sum(cardinality(documents)), 0), count(*) FILTER (WHERE cardinality(documents) = 0),
       sum(seconds), avg(seconds), COALESCE(sum(tokens_in), 0), COALESCE(sum(tokens_out), 0)
FROM benchmark_ranking WHERE run_id = %s
"""
FIELDS = ("queries", "documents", "empty", "seconds", "seconds_per_query", "tokens_in", "tokens_out")


def run_cost(run: Run) -> dict[str, Any]:
    """Rankings, their documents, those without any; seconds (null: unknown) and tokens in all, seconds of a query.

    And the calls that were sent for it, those taken over from earlier ones, and USD (null: no price is known).
    """
    with connection.cursor() as cursor:
        cursor.execute(SQL, [run.pk])
        found = dict(zip(FIELDS, cursor.fetchone(), strict=True))
    calls, cached, cost = paid_calls(run)
    return {**found, "calls": calls, "calls_cached": cached, "cost": cost.usd}


def paid_calls(run: Run) -> tuple[int, int, Paid]:
    """Calls that were sent, calls taken over from equal ones, and what was paid."""
    if run.campaign is None:
        return 0, 0, Paid(0.0)
    sums = counters.read(run.campaign)
    calls, unpriced = int(sums["calls"]), int(sums["calls_without_price"])
    assumed, most = int(sums["calls_assumed"]), sums["cost_assumed"]
    return calls, int(sums["calls_cached"]), of_calls(sums["cost"], calls, unpriced, assumed, most)
