"""Costs of a run: time, tokens and money."""

from typing import Any

from django.db.models import Avg, Count, Q, Sum

from benchmark.models import Ranking, Run
from judges.model_jobs.jobs import ledger_sum_of


def run_cost(run: Run) -> dict[str, Any]:
    """Return a run's cost. `timed`: queries with a known time; `paid` is None for runs without models."""
    cost = Ranking.objects.filter(run=run).aggregate(
        queries=Count("pk"),
        # Later annotations see earlier ones, so one with the name of a field comes after others of that field.
        empty=Count("pk", filter=Q(documents__len=0)),
        documents=Sum("documents__len", default=0),
        timed=Count("seconds"),
        seconds_per_query=Avg("seconds"),
        seconds=Sum("seconds"),
        tokens_in=Sum("tokens_in", default=0),
        tokens_out=Sum("tokens_out", default=0),
    )
    if (usage := ledger_sum_of(run)) is None:
        return {**cost, "calls": 0, "calls_cached": 0, "paid": None}
    # Rankings have the tokens of their queries; the ledger has those of the documents' vectors, too.
    tokens = {name: max(cost[name], getattr(usage, name)) for name in ("tokens_in", "tokens_out")}
    return {**cost, **tokens, "calls": usage.calls, "calls_cached": usage.cached, "paid": usage.paid}


def cost_document(run: Run) -> dict[str, Any]:
    """Return the cost for the leaderboard: seconds per query, USD, and whether USD is a lower bound."""
    cost = run_cost(run)
    paid = cost["paid"]
    return {
        "seconds": cost["seconds_per_query"],
        "usd": 0.0 if paid is None else paid.usd,
        "at_least": paid is not None and paid.at_least,
    }
