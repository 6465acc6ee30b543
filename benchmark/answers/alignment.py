"""RAGAlign: does what retrieval found agree with whether the answer was right (DREAM 5.2, J.3)? Pure.

Retrieval outcomes are (systems, queries) under each version of the qrels; generation outcomes are
(systems, generators, queries) and depend on no version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import ne
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.report.graded_runs import Floats
from benchmark.significance.tests import Values, add_tests, mean_changes, rank_means
from charts.translation import gettext_noop

Bools = NDArray[np.bool_]
# What is known of a cell's RAGAlign; all but `before` are None where there is one version alone.
TESTED = ("before", "after", "change", "low", "high", "p", "p_holm")
SAME = 1e-12  # A spread below it is none.
NO_SPREAD = {
    "answers": gettext_noop("all answers have the same verdict"),
    "retrieval": gettext_noop("nDCG is the same for every query"),
    "queries": gettext_noop("fewer than two queries"),
}


@dataclass(frozen=True)
class RetrievalOutcomes:
    """Outcomes of retrieval under a version of the qrels: Hit@k and nDCG@k, (systems, queries)."""

    hit: Floats
    ndcg: Floats


@dataclass(frozen=True)
class AnswerOutcomes:
    """Outcomes of generation, each (systems, generators, queries)."""

    correct: Bools
    exact: Bools


def graded_align(values: Floats, correct: Bools) -> tuple[float | None, str]:
    """Pearson's correlation of nDCG@k with the outcome (point-biserial); None with a reason where one never varies."""
    if len(values) < 2:
        return None, NO_SPREAD["queries"]
    if correct.all() or not correct.any():
        return None, NO_SPREAD["answers"]
    # The spread, since the standard deviation of equal floats need not be exactly 0.
    if float(np.ptp(values)) < SAME:
        return None, NO_SPREAD["retrieval"]
    return float(np.corrcoef(values, correct.astype(np.float64))[0, 1]), ""


def normalise(values: Sequence[float]) -> list[float | None]:
    """The values moved to 0 (the lowest) .. 1 (the highest); None where all are equal."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(value - low) / (high - low) if high - low > SAME else None for value in values]


def correlate(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Pearson's correlation over systems; None for under three, or without variance."""
    if len(one) < 3 or np.ptp(one) < SAME or np.ptp(other) < SAME:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def compare_versions(
    systems: Sequence[str],
    generators: Sequence[str],
    before: RetrievalOutcomes,
    after: RetrievalOutcomes | None,
    answers: AnswerOutcomes,
    seed: int,
) -> dict[str, Any]:
    """All figures of an evaluation. `after` None: there is one version of the qrels alone, and no change to show."""
    agree = {"before": _agreement(before, answers)}
    if after is not None:
        agree["after"] = _agreement(after, answers)
    names = [f"{system} {generator}" for system in systems for generator in generators]
    aligned = _align_cells(agree, names, seed)
    versions = {"before": before} | ({"after": after} if after is not None else {})
    cells: list[dict[str, Any]] = [
        {
            "system": system,
            "generator": generator,
            "align": aligned[s * len(generators) + g],
            "graded": _graded(versions, s, answers.correct[s, g]),
            "generation": float(answers.correct[s, g].mean()),
            "exact_match": float(answers.exact[s, g].mean()),
        }
        for s, system in enumerate(systems)
        for g, generator in enumerate(generators)
    ]
    # Over the systems, as the paper's tables have it: one value for each generator.
    means = {when: found.mean(axis=0, keepdims=True) for when, found in agree.items()}
    of_means = _align_cells(means, list(generators), seed)
    hits = {when: one.hit.mean(axis=1).tolist() for when, one in versions.items()}
    blank = dict.fromkeys(("before", "after", "rank_before", "rank_after"))
    ranked: list[dict[str, Any]] = [{"name": name, **blank} for name in systems]
    ranks = {when: rank_means(values) for when, values in hits.items()}
    for when, values in hits.items():
        for row, value, rank in zip(ranked, values, ranks[when], strict=True):
            row |= {when: value, f"rank_{when}": rank}
    return {
        "systems": ranked,
        "cells": cells,
        "means": [
            {
                "generator": name,
                "align": of_means[g],
                "graded": _mean_graded([cell["graded"] for cell in cells if cell["generator"] == name]),
                "generation": float(answers.correct[:, g].mean()),
            }
            for g, name in enumerate(generators)
        ],
        # Systems that have another rank by Hit@k in the later version.
        "moved": sum(map(ne, ranks["before"], ranks["after"])) if "after" in ranks else None,
        "correlation": [
            {"generator": name}
            | {when: correlate(found, answers.correct[:, g].mean(axis=1).tolist()) for when, found in hits.items()}
            for g, name in enumerate(generators)
        ],
    }


def _agreement(retrieval: RetrievalOutcomes, answers: AnswerOutcomes) -> Floats:
    """1 where both outcomes of a query agree, (systems, generators, queries)."""
    return np.asarray((retrieval.hit > 0)[:, None, :] == answers.correct, dtype=np.float64)


def _align_cells(agree: Mapping[str, Floats], names: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """RAGAlign of each cell, with the interval and p of its change (paired over the queries, Holm over the cells)."""
    flat = {when: found.reshape(-1, found.shape[-1]) for when, found in agree.items()}
    if "after" not in flat:
        return [dict.fromkeys(TESTED) | {"before": float(row.mean())} for row in flat["before"]]
    values = Values(flat["before"], flat["after"])
    told = {"align": mean_changes(values)}
    add_tests(told, {"align": values}, names, seed)
    return [{name: row[name] for name in TESTED} for row in told["align"]]


def _graded(versions: Mapping[str, RetrievalOutcomes], system: int, correct: Bools) -> dict[str, Any]:
    found: dict[str, Any] = {"before": None, "after": None, "change": None, "reasons": {"before": "", "after": ""}}
    for when, one in versions.items():
        found[when], found["reasons"][when] = graded_align(one.ndcg[system], correct)
    if found["before"] is not None and found["after"] is not None:
        found["change"] = found["after"] - found["before"]
    return found


def _mean_graded(cells: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """The mean of the graded values over systems (DREAM table 21); None if one has none."""
    found: dict[str, float | None] = {}
    for name in ("before", "after", "change"):
        values = [cell[name] for cell in cells]
        found[name] = None if None in values else sum(values) / len(values)
    return found
