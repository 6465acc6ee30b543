"""The verdict on a training, the same on its page, model card and command (pure)."""

from collections.abc import Mapping
from typing import Any

from benchmark.measures.rankings import Paired, compare_runs

LEVEL = 0.05
LEAST_QUERIES = 5
TOO_FEW = "too few"  # In the words of version 0.1.0, too.
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
    """Compare a tuned model with its base on the queries that both have: means, difference, interval, p, a verdict.

    `base`, `tuned` and `first` are values by query; `first` is the ranking that the model would reorder, named
    `first_stage`. `random_head`: the base had no scoring head and got a random one.

    In the result, `shown` is true for a significant gain over the base (over the first stage if the head is random),
    unless the model is significantly worse than the first stage (`below`) or there are fewer queries than `least`.
    """
    shared = sorted(base.keys() & tuned.keys())
    figures: dict[str, Any] = dict.fromkeys(("base", "tuned", "difference", "low", "high", "p"))
    against_base = against_first = None
    if shared:
        before, after = ({query: side[query] for query in shared} for side in (base, tuned))
        against_base = compare_runs(measure, after, before)
        figures = {"base": _mean(before), "tuned": _mean(after), **_figures(against_base)}
        against_first = compare_runs(measure, after, first) if first else None
    is_testable = len(shared) >= least
    gain = against_first if random_head else against_base
    below = is_testable and sign_of(against_first) < 0
    shown = is_testable and sign_of(gain) > 0 and not below
    verdict = gain_verdict(measure, figures["difference"], figures["p"], len(shared), least)
    if is_testable and against_base is not None:
        verdict = f"{RANDOM_HEAD} ({len(shared)} queries)" if random_head else verdict
        verdict = _compose_verdict(verdict, against_first, first_stage, random_head=random_head)
    result = {"measure": measure, **figures, "queries": len(shared), "random_head": random_head}
    if first and against_first is not None:
        mean = _mean({query: first[query] for query in shared if query in first})
        result["first_stage"] = {"name": first_stage, "mean": mean, **_figures(against_first)}
    return {**result, "below": below, "shown": shown, "words": verdict}


def sign_of(comparison: Paired | None) -> int:
    """Return 1 for a significant gain, -1 for a significant loss, else 0."""
    if comparison is None or comparison.p >= LEVEL:
        return 0
    return (comparison.difference > 0) - (comparison.difference < 0)


def gain_verdict(
    measure: str, difference: float | None, p: float | None, queries: int, least: int = LEAST_QUERIES
) -> str:
    """Return a phrase about a gain, a loss, or "no gain shown", which does not prove that there is no effect."""
    if difference is None or p is None:
        return f"no gain shown: {measure} is not measured on any query that both models answered"
    if queries < least:
        return f"no gain shown: {TOO_FEW} dev queries to test it ({queries}, {measure} {difference:+.3f})"
    change = f"{measure} {difference:+.3f} over {queries} queries"
    if p >= LEVEL:
        return f"no gain shown: p = {p:.2g} ({change})"
    figures = f"{change}, p {'< 0.0001' if p < 0.0001 else f'= {p:.2g}'}"
    return f"gain: {figures}" if difference > 0 else f"worse than its base: {figures}"


def _compose_verdict(against_base: str, against_first: Paired | None, first_stage: str, *, random_head: bool) -> str:
    """Return the verdicts against base and first stage as one: a loss to the first stage first, a random head last."""
    if against_first is None:
        return f"no gain shown: {against_base}" if random_head else against_base
    figures = f"{against_first.difference:+.3f}, 95% {against_first.low:+.3f} to {against_first.high:+.3f}"
    if sign_of(against_first) < 0:
        return f"ranks below {first_stage} ({figures}): do not use it; {against_base}"
    above = f"{'ranks above' if sign_of(against_first) > 0 else 'not shown to rank above'} {first_stage} ({figures})"
    return f"{above}; {against_base}" if random_head else f"{against_base}; {above}"


def _figures(comparison: Paired) -> dict[str, float]:
    return {name: getattr(comparison, name) for name in ("difference", "low", "high", "p")}


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)
