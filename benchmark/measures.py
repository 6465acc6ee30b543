"""Measures of rankings by ir_measures, and paired tests between two of them (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from benchmark.interpolated import is_interpolated, precision
from corpus.errors import BadInput

Qrels = Mapping[str, Mapping[str, int]]
"""query id -> document id -> grade."""
Run = Mapping[str, Mapping[str, float]]
"""query id -> document id -> score; higher is better, ties by document id descending, as trec_eval has them."""
RESAMPLES = 10_000
EXACT = 16
"""Queries up to which all 2^n sign patterns are counted."""


@dataclass(frozen=True)
class Result:
    """Means over the qrels' queries, each query's values, and queries that the run lacks: they count 0."""

    queries: int
    missing: list[str]
    means: dict[str, float]
    per_query: dict[str, dict[str, float]]
    """measure -> query id -> value."""


@dataclass(frozen=True)
class Paired:
    """One run against another on one measure: the mean difference, its interval, and a two-sided p."""

    measure: str
    queries: int
    difference: float
    low: float
    high: float
    p: float
    test: str = "paired randomisation test; 95% bootstrap interval over queries"


def parse(measures: str | Sequence[str]) -> dict[str, Any]:
    """ir_measures' objects by the names as given. Raises BadInput for one that does not exist."""
    import ir_measures

    names = measures.split() if isinstance(measures, str) else list(measures)
    found = {}
    for name in names:
        try:
            found[name] = ir_measures.parse_measure(name)
        except (ValueError, NameError, KeyError) as error:
            raise BadInput(
                f"{name!r} is no measure that ir_measures knows, such as nDCG@10, R@100, RR, AP ({error})"
            ) from None
    if not found:
        raise BadInput('name at least one measure, such as --measures "nDCG@10 R@100"')
    return found


def evaluate(qrels: Qrels, run: Run, measures: str | Sequence[str]) -> Result:
    """Every measure on every query of the qrels. Scores are compared as float32, as trec_eval does."""
    import ir_measures

    wanted = parse(measures)
    if not qrels:
        raise BadInput("the qrels hold no query: there is nothing to measure")
    shared = {query: dict(run[query]) for query in qrels if run.get(query)}
    per_query = {name: dict.fromkeys(qrels, 0.0) for name in wanted}
    names: dict[str, list[str]] = {}
    for name, measure in wanted.items():
        names.setdefault(str(measure), []).append(name)
    scores = {query: {doc: float(np.float32(score)) for doc, score in docs.items()} for query, docs in shared.items()}
    grades = {query: dict(docs) for query, docs in qrels.items() if query in scores}
    theirs = {measure for measure in wanted.values() if not is_interpolated(measure)}
    if scores and theirs:
        for one in ir_measures.iter_calc(list(theirs), grades, scores):
            for name in names[str(one.measure)]:
                per_query[name][one.query_id] = float(one.value)
    for name, measure in wanted.items():
        if measure not in theirs:
            per_query[name] |= {query: precision(measure, grades[query], scores[query]) for query in scores}
    means = {name: float(np.mean(list(values.values()))) for name, values in per_query.items()}
    return Result(len(qrels), sorted(set(qrels) - set(shared)), means, per_query)


def compare(measure: str, one: Mapping[str, float], other: Mapping[str, float], *, seed: int = 0) -> Paired:
    """`one` minus `other` over the queries that both have. Raises BadInput when they share none."""
    shared = sorted(one.keys() & other.keys())
    if not shared:
        raise BadInput(f"the two runs share no query to compare {measure} on")
    differences = np.array([one[query] - other[query] for query in shared])
    random = np.random.default_rng(seed)
    picks = random.integers(0, len(shared), (2000, len(shared)))
    low, high = np.quantile(differences[picks].mean(axis=1), [0.025, 0.975])
    return Paired(measure, len(shared), float(differences.mean()), float(low), float(high), _p(differences, random))


def _p(differences: "np.ndarray[Any, Any]", random: np.random.Generator) -> float:
    """Two-sided: how often random signs give a mean at least as far from 0."""
    differing = differences[np.abs(differences) > 1e-12]
    if not len(differing):
        return 1.0
    observed = abs(differing.sum()) - 1e-9
    if len(differing) <= EXACT:
        return exact_p(differing)
    signs = random.integers(0, 2, (RESAMPLES, len(differing))) * 2 - 1
    return float((1 + (np.abs(signs @ differing) >= observed).sum()) / (RESAMPLES + 1))


def exact_p(differing: "np.ndarray[Any, Any]") -> float:
    """The share of all 2^n sign patterns whose sum is at least as far from 0."""
    return float((np.abs(all_signs(len(differing)) @ differing) >= abs(differing.sum()) - 1e-9).mean())


@lru_cache(maxsize=EXACT + 1)
def all_signs(queries: int) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """(2^(queries - 1), queries) of 1 and -1; at most EXACT queries.

    The last sign is the same in all: turning every sign round leaves a sum as far from 0, so half the patterns do.
    """
    bits = (np.arange(2 ** (queries - 1))[:, None] >> np.arange(queries)) & 1
    return (2 * bits - 1).astype(np.float64)
