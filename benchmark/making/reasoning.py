"""Runs that search for a judge's reasoning about the query (BRIGHT). A reranker over such a run sees the query."""

from collections.abc import Sequence
from typing import Any

from benchmark.making import Stopped, Tell, paying, written
from benchmark.models import Run
from corpus.models import Collection, Query
from judges.estimates import Estimate
from judges.prompts.searching import REASONING_SCHEMA, reason_prompt
from judges.retrieval import Call

ROLE = "reason"


def check(collection: Collection, recipe: dict[str, Any], depth: int) -> dict[str, Any]:
    """`judge`, `over` (what searches), limits. Raises BadInput."""
    paying.known_keys(recipe, ("judge", "over"))
    return written.check(collection, ROLE, recipe)


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """The reasoning alone is searched for."""
    written.make(run, ROLE, _calls, _reasoning, progress, stopped)


def estimate(collection: Collection, recipe: dict[str, Any]) -> Estimate:
    """Of the judge's calls."""
    return written.estimate(collection, paying.judge_of(ROLE, recipe), _calls)


def _calls(query: Query, instruction: str) -> tuple[Call, ...]:
    return (Call(ROLE, 0, reason_prompt(query.text, instruction), REASONING_SCHEMA),)


def _reasoning(query: str, texts: Sequence[str]) -> str:
    return texts[0]
