"""Runs that search for a judge's reasoning about the query (BRIGHT). A reranker over such a run sees the query."""

from collections.abc import Mapping
from typing import Any

from benchmark.models import Run
from benchmark.runs import llm_budget, query_expansion
from benchmark.runs.builders import Stopped, Tell
from corpus.models import Collection, Query
from judges.campaigns.estimates import Estimate
from judges.prompts.searching import REASONING_SCHEMA, reason_prompt
from judges.records import Judge
from judges.retrieval.model_requests import RetrievalRequest

ROLE = "reason"


def check(collection: Collection, recipe: dict[str, Any], depth: int) -> dict[str, Any]:
    """`judge`, `over` (what searches). Raises BadInput."""
    llm_budget.known_keys(recipe, ("judge", "over"))
    return query_expansion.check_expansion(collection, ROLE, recipe)


def judges(recipe: Mapping[str, Any]) -> list[Judge]:
    """Return who writes, and who embeds."""
    return query_expansion.judges_of(ROLE, recipe)


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Search for the judge's reasoning alone, without the query."""
    query_expansion.make_expanded_run(run, ROLE, _build_requests, lambda _query, texts: texts[0], progress, stopped)


def estimate(collection: Collection, recipe: dict[str, Any]) -> Estimate:
    """Estimate the calls of the judge; vectors are not in it."""
    return query_expansion.estimate_cost(collection, recipe, llm_budget.judge_of(ROLE, recipe), _build_requests)


def _build_requests(query: Query, instruction: str) -> tuple[RetrievalRequest, ...]:
    return (RetrievalRequest(ROLE, 0, reason_prompt(query.text, instruction), REASONING_SCHEMA),)
