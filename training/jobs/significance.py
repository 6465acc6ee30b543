"""The verdict on a training (pure), the same on page, card and command."""

from collections.abc import Mapping
from typing import Any

from benchmark.measures.rankings import Paired, compare_runs

LEVEL = 0.05
LEAST_QUERIES = 5
TOO_FEW = "queries are too few to test"
RANDOM_HEAD = "its base has a random head, which is no yardstick"


def compare_models(
    base: Mapping[str, float],
    tuned: Mapping[str, float],
    *,
    measure: str = "nDCG@10",
    least: int = LEAST_QUERIES,
    first: Mapping[str, float] | None = None,
    first_stage: str = "BM25",
    random_head: bool = False,
) -> dict[str, Any]:
    """Compare over the queries that both sides measured: means, their difference, interval, a two-sided p, a verdict.

    `first`: the same of the ranking that the model would reorder, which `first_stage` names.
    `random_head`: the base had no head to score with, and got a random one. `shown` is true only
    for a rise with p below the level over the base, or over the first stage where the head is
    random, and never below the first stage or with fewer queries than `least`; `below` only for a
    loss to the first stage.
    """
    shared = sorted(base.keys() & tuned.keys())
    figures: dict[str, Any] = dict.fromkeys(("base", "tuned", "difference", "low", "high", "p"))
    against_base = against_first = None
    if shared:
        before, after = ({query: side[query] for query in shared} for side in (base, tuned))
        against_base = compare_runs(measure, after, before)
        figures = {"base": _mean(before), "tuned": _mean(after), **_figures(against_base)}
        against_first = compare_runs(measure, after, first) if first else None
    enough = len(shared) >= least
    gained = against_first if random_head else against_base
    below = enough and sign_of(against_first) < 0
    shown = enough and sign_of(gained) > 0 and not below
    words = gain_verdict(measure, figures["difference"], figures["p"], len(shared), least)
    if enough and against_base is not None:
        words = f"{RANDOM_HEAD} ({len(shared)} queries)" if random_head else words
        words = _compose_verdict(words, against_first, first_stage, random_head=random_head)
    found = {"measure": measure, **figures, "queries": len(shared), "random_head": random_head}
    if first and against_first is not None:
        mean = _mean({query: first[query] for query in shared if query in first})
        found["first_stage"] = {"name": first_stage, "mean": mean, **_figures(against_first)}
    return {**found, "below": below, "shown": shown, "words": words}


def sign_of(found: Paired | None) -> int:
    """Return 1 for a shown rise, -1 for a shown loss, 0 where neither is shown."""
    return 0 if found is None or found.p >= LEVEL else (found.difference > 0) - (found.difference < 0)


def gain_verdict(
    measure: str, difference: float | None, p: float | None, queries: int, least: int = LEAST_QUERIES
) -> str:
    """Return one sentence: a gain, a loss, or no gain shown (no proof of no effect)."""
    if difference is None or p is None:
        return f"no gain shown: {measure} is not measured on any query that both models answered"
    if queries < least:
        return f"no gain shown: {queries} {TOO_FEW} ({measure} {difference:+.3f})"
    chance = "< 0.0001" if p < 0.0001 else f"= {p:.2g}"
    at = f"{measure} {difference:+.3f} over {queries} queries, p {chance}"
    if p >= LEVEL:
        return f"no gain shown: p = {p:.2g} ({measure} {difference:+.3f} over {queries} queries)"
    return f"gain: {at}" if difference > 0 else f"worse than its base: {at}"


def _compose_verdict(against_base: str, against_first: Paired | None, first_stage: str, *, random_head: bool) -> str:
    """Return the words about the base and those about the first stage: a loss stands first, a random head last."""
    if against_first is None:
        return f"no gain shown: {against_base}" if random_head else against_base
    figures = f"{against_first.difference:+.3f}, 95% {against_first.low:+.3f} to {against_first.high:+.3f}"
    if sign_of(against_first) < 0:
        return f"ranks below {first_stage} ({figures}): do not use it; {against_base}"
    above = f"{'ranks above' if sign_of(against_first) > 0 else 'not shown to rank above'} {first_stage} ({figures})"
    return f"{above}; {against_base}" if random_head else f"{against_base}; {above}"


def _figures(found: Paired) -> dict[str, float]:
    return {"difference": found.difference, "low": found.low, "high": found.high, "p": found.p}


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)
