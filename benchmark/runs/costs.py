"""Costs of a run: time, tokens and money."""

from typing import Any

from django.db.models import Avg, Count, Q, Sum

from benchmark.models import Ranking, Run
from judges.model_jobs.jobs import ledger_sum_of


def run_cost(run: Run) -> dict[str, Any]:
    """Return a run's cost. `timed`: queries with known seconds; `paid` None: no model."""
    cost = Ranking.objects.filter(run=run).aggregate(
        queries=Count("pk"),
        # Later entries see earlier ones, so what takes a field's name comes behind the others of that field.
        empty=Count("pk", filter=Q(documents__len=0)),
        documents=Sum("documents__len", default=0),
        timed=Count("seconds"),
        seconds_per_query=Avg("seconds"),
        seconds=Sum("seconds"),
        tokens_in=Sum("tokens_in", default=0),
        tokens_out=Sum("tokens_out", default=0),
    )
    if (spent := ledger_sum_of(run)) is None:
        return {**cost, "calls": 0, "calls_cached": 0, "paid": None}
    # Rankings know what their queries took; the ledger knows the documents' vectors, too.
    tokens = {name: max(cost[name], getattr(spent, name)) for name in ("tokens_in", "tokens_out")}
    return {**cost, **tokens, "calls": spent.calls, "calls_cached": spent.cached, "paid": spent.paid}


def cost_document(run: Run) -> dict[str, Any]:
    """Return the leaderboard's cost: seconds a query, USD (None: unknown), was more paid?"""
    cost = run_cost(run)
    paid = cost["paid"]
    return {
        "seconds": cost["seconds_per_query"],
        "usd": 0.0 if paid is None else paid.usd,
        "at_least": paid is not None and paid.at_least,
    }
