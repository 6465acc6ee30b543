"""RAGAlign: does the success of retrieval agree with the correctness of the answer (DREAM 5.2, J.3)? Pure.

Retrieval outcomes are (systems, queries) under each version of the qrels; generation outcomes are
(systems, generators, queries) and depend on no version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import ne
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.measures.graded_runs import Floats
from benchmark.significance.tests import Values, add_tests, mean_changes, rank_means
from charts.translation import gettext_noop

Bools = NDArray[np.bool_]
# The figures of a cell's RAGAlign; all but `before` are None if there is only one version of the qrels.
TESTED = ("before", "after", "change", "low", "high", "p", "p_holm")
SAME = 1e-12  # Values with a smaller spread count as equal.
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
    """Return Pearson's correlation of nDCG@k with correctness (point-biserial); None and the reason if undefined."""
    if len(values) < 2:
        return None, NO_SPREAD["queries"]
    if correct.all() or not correct.any():
        return None, NO_SPREAD["answers"]
    # The spread is compared, since the standard deviation of equal floats need not be exactly 0.
    if float(np.ptp(values)) < SAME:
        return None, NO_SPREAD["retrieval"]
    return float(np.corrcoef(values, correct.astype(np.float64))[0, 1]), ""


def normalise(values: Sequence[float]) -> list[float | None]:
    """Scale the values to 0 (the lowest) to 1 (the highest); None for each if all are equal."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(value - low) / (high - low) if high - low > SAME else None for value in values]


def correlate(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Pearson's correlation over systems; None for fewer than three, or without variance."""
    if len(first) < 3 or np.ptp(first) < SAME or np.ptp(second) < SAME:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def compare_versions(
    systems: Sequence[str],
    generators: Sequence[str],
    before: RetrievalOutcomes,
    after: RetrievalOutcomes | None,
    answers: AnswerOutcomes,
    seed: int,
) -> dict[str, Any]:
    """Return all figures of an evaluation; `after` is None if there is only one version of the qrels."""
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
            "graded": _graded_by_version(versions, s, answers.correct[s, g]),
            "generation": float(answers.correct[s, g].mean()),
            "exact_match": float(answers.exact[s, g].mean()),
        }
        for s, system in enumerate(systems)
        for g, generator in enumerate(generators)
    ]
    # Over the systems, as in the paper's tables: one value for each generator.
    means = {when: column_values.mean(axis=0, keepdims=True) for when, column_values in agree.items()}
    of_means = _align_cells(means, list(generators), seed)
    hits = {when: outcomes.hit.mean(axis=1).tolist() for when, outcomes in versions.items()}

    def mean_graded(generator: str, version: str) -> float | None:
        # Over systems (DREAM table 21); None if a system has no value.
        values = [cell["graded"][version] for cell in cells if cell["generator"] == generator]
        return None if None in values else sum(values) / len(values)

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
                "graded": {version: mean_graded(name, version) for version in ("before", "after", "change")},
                "generation": float(answers.correct[:, g].mean()),
            }
            for g, name in enumerate(generators)
        ],
        # Systems whose rank by Hit@k differs between the versions.
        "moved": sum(map(ne, ranks["before"], ranks["after"])) if "after" in ranks else None,
        "correlation": [
            {"generator": name}
            | {
                when: correlate(hit_rates, answers.correct[:, g].mean(axis=1).tolist())
                for when, hit_rates in hits.items()
            }
            for g, name in enumerate(generators)
        ],
    }


def _agreement(retrieval: RetrievalOutcomes, answers: AnswerOutcomes) -> Floats:
    """Return 1 where both outcomes of a query agree, else 0; (systems, generators, queries)."""
    return np.asarray((retrieval.hit > 0)[:, None, :] == answers.correct, dtype=np.float64)


def _align_cells(agree: Mapping[str, Floats], names: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Return RAGAlign of each cell with the interval and p of its change, paired over queries and Holm over cells."""
    flat = {when: cell_values.reshape(-1, cell_values.shape[-1]) for when, cell_values in agree.items()}
    if "after" not in flat:
        return [dict.fromkeys(TESTED) | {"before": float(row.mean())} for row in flat["before"]]
    values = Values(flat["before"], flat["after"])
    rows = {"align": mean_changes(values)}
    add_tests(rows, {"align": values}, names, seed)
    return [{name: row[name] for name in TESTED} for row in rows["align"]]


def _graded_by_version(versions: Mapping[str, RetrievalOutcomes], system: int, correct: Bools) -> dict[str, Any]:
    row: dict[str, Any] = {"before": None, "after": None, "change": None, "reasons": {"before": "", "after": ""}}
    for when, outcomes in versions.items():
        row[when], row["reasons"][when] = graded_align(outcomes.ndcg[system], correct)
    if row["before"] is not None and row["after"] is not None:
        row["change"] = row["after"] - row["before"]
    return row
