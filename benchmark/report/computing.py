"""Computing a report on runs by two versions of the qrels, from arrays. Pure. Shape: docs/workshop.md."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmark.measures import arrays as measures
from benchmark.measures.graded_runs import (
    NONE,
    Floats,
    Ints,
    Judgments,
    Rankings,
    Version,
    encode_pairs,
    stack_rankings,
)
from benchmark.report import curves, verdict
from benchmark.significance.query_weights import effective_queries, weights_by_count
from benchmark.significance.tests import Values, add_tests, count_swapped, kendall_tau, mean_changes, rank_means

VERSION = 3  # Version of the result's shape and computation, which is part of a report's key.
STEPS = 5  # Steps that `progress` counts.
BAND = ("systems", "value", "low", "high")


@dataclass(frozen=True)
class ReportSystem:
    """A run of the report."""

    run: int
    name: str
    kind: str
    rankings: Rankings


@dataclass(frozen=True)
class AspectValues:
    """Values over the queries that have aspects; they do not depend on a version of the qrels."""

    queries: list[int]
    values: Mapping[str, Floats]  # Measure to (systems, queries).
    k: int  # Depth of the measures of aspects, which may differ from that of the others.


@dataclass(frozen=True)
class ReportQuestion:
    """The inputs of a report."""

    systems: Sequence[ReportSystem]
    before: Judgments
    after: Judgments
    k: int
    relevant_from: int = 1
    seed: int = 0
    aspects: AspectValues | None = None
    counts: Mapping[int, float] | None = None  # How often each query was asked, by which means are weighted; else None.

    @cached_property
    def queries(self) -> list[int]:
        """Return the queries of both versions, or without any those of the runs; a missing query counts 0."""
        judged = self.before.keys() | self.after.keys()
        # Without judged queries those of the runs are used, so that bounds of an unjudged pool can be computed.
        return sorted(judged or {query for system in self.systems for query in system.rankings})

    def weights_of(self, queries: Sequence[int]) -> Floats | None:
        """Return the queries' weights in a mean over them, on average 1; None for a plain mean."""
        return None if self.counts is None else weights_by_count([self.counts.get(query) for query in queries])


def compute_report(
    question: ReportQuestion, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[dict[str, Any], dict[str, Values]]:
    """Compute the whole report: the result as JSON, and each query's values, without its weight, by measure.

    `progress(done, total)` is called between its steps.
    """
    progress(0, STEPS)
    documents = stack_rankings([system.rankings for system in question.systems], question.queries, question.k)
    # One number per pair, so that looking up millions of pairs is a search in a sorted array.
    codes = encode_pairs(documents)
    before, after = (Version.of(judgments, question.queries) for judgments in (question.before, question.after))
    graded = [
        measures.Graded(documents, version.look_up(codes), version, question.relevant_from)
        for version in (before, after)
    ]
    values = {"hole": Values(None, measures.hole_at_k(*graded))}
    values |= {key: Values(*map(measure, graded)) for key, measure in measures.BY_VERSION.items()}
    progress(1, STEPS)
    names = [system.name for system in question.systems]
    weights = question.weights_of(question.queries)
    rows = _compare_systems(values, measures.RANKING, names, question.seed, weights)
    if (aspects := question.aspects) is not None and aspects.queries:
        # Tested separately: other queries need other random signs.
        aspect_values = {key: Values(None, matrix) for key, matrix in aspects.values.items()}
        values |= aspect_values
        aspect_weights = question.weights_of(aspects.queries)
        rows |= _compare_systems(aspect_values, tuple(aspect_values), names, question.seed, aspect_weights)
    progress(2, STEPS)
    changes = curves.changed_labels(documents, before, after, question.relevant_from)
    growth, contribution = _pool_curves(question, documents, before, after, changes)
    progress(4, STEPS)
    holes = int(changes.is_hole.sum())
    relevant = {
        name: version.at_least(question.relevant_from) for name, version in (("before", before), ("after", after))
    }
    systems = []
    for position, system in enumerate(question.systems):
        returned = (documents[position] != NONE).sum(axis=1)
        systems.append(
            {
                "run": system.run,
                "name": system.name,
                "kind": system.kind,
                "missing": int((returned == 0).sum()),
                "short": int(((returned > 0) & (returned < documents.shape[2])).sum()),
                "values": {key: measure_rows[position] for key, measure_rows in rows.items()},
            }
        )
    result = {
        "version": VERSION,
        "k": question.k,
        "seed": question.seed,
        "relevant_from": question.relevant_from,
        "queries": question.queries,
        "queries_before": len(question.before),
        "queries_after": len(question.after),
        "judged": {"before": len(before.codes), "after": len(after.codes)},
        "relevant": {name: int(counts.sum()) for name, counts in relevant.items()},
        "no_relevant": {name: int((counts == 0).sum()) for name, counts in relevant.items()},
        "holes": holes,
        "holes_in_unjudged_queries": curves.holes_in_unjudged_queries(changes, before),
        "measures": list(values),
        "systems": systems,
        **_over_systems(rows),
        "common": _common_queries(question, documents, values, names),
        "orders": curves.ORDERS,
        "growth": growth,
        "marginal": contribution,
        "verdict": verdict.saturation_verdict(
            len(names),
            holes,
            growth[-1]["rate"] if growth else None,
            {key: points[-1]["value"] if points else None for key, points in contribution.items()},
        ),
        "aspects": {"queries": aspects.queries, "k": aspects.k} if aspects is not None and aspects.queries else None,
    }
    # Where means are plain there is nothing to say, and the result is what it was before there were weights.
    if question.counts is not None and weights is not None:
        result["weights"] = {
            "by": "counts",
            "without": sum(query not in question.counts for query in question.queries),
            "effective": effective_queries(weights),
        }
    progress(STEPS, STEPS)
    return result, values


def _common_queries(
    question: ReportQuestion, documents: Ints, values: Mapping[str, Values], names: list[str]
) -> dict[str, Any]:
    """Return the figures over queries that every system answered and every version judges.

    Without `systems` in the result the figures would be of all queries, or of none.
    """
    # A version that judges nothing would leave no query in common.
    versions = [judgments for judgments in (question.before, question.after) if judgments]
    is_judged = np.array([all(query in judgments for judgments in versions) for query in question.queries])
    positions = np.flatnonzero(is_judged & (documents != NONE).any(axis=2).all(axis=0))
    # With all queries the figures would repeat the others, and with none be empty.
    if len(positions) in (0, len(question.queries)):
        return {"queries": len(positions)}
    common_values = {key: values[key].of(positions) for key in ("hole", *measures.BY_VERSION)}
    weights = question.weights_of([question.queries[position] for position in positions])
    rows_by_measure = _compare_systems(common_values, measures.RANKING, names, question.seed, weights)
    systems = [{key: rows[position] for key, rows in rows_by_measure.items()} for position in range(len(names))]
    return {"queries": len(positions), "systems": systems, **_over_systems(rows_by_measure)}


def _compare_systems(
    values: Mapping[str, Values], ranking: Sequence[str], names: list[str], seed: int, weights: Floats | None
) -> dict[str, list[dict[str, Any]]]:
    """Return means by measure and system, with tests, ranks and letters for measures that rank systems."""
    if weights is not None:
        values = {key: measure_values.times(weights) for key, measure_values in values.items()}
    rows = {key: mean_changes(measure_values) for key, measure_values in values.items()}
    add_tests(rows, {key: values[key] for key in ranking}, names, seed, weights)
    return rows


def _over_systems(rows_by_measure: Mapping[str, Any]) -> dict[str, Any]:
    """Return unweighted means over the systems, and the change of order: Kendall's tau, moved ranks, swapped pairs."""
    means: dict[str, dict[str, float | None]] = {}
    order: dict[str, dict[str, float | None]] = {}
    for key, rows in rows_by_measure.items():
        means[key] = {
            name: None if rows[0][name] is None else float(np.mean([row[name] for row in rows]))
            for name in ("before", "after", "change")
        }
    for key in measures.RANKING:
        order[key] = {"tau": None, "moved": 0, "swapped": 0}
        means_before, means_after = ([row[name] for row in rows_by_measure[key]] for name in ("before", "after"))
        if None not in means_before:
            # Means that differ only by rounding share a rank, so that no move is counted between them.
            rank_pairs = zip(rank_means(means_before), rank_means(means_after), strict=True)
            order[key] = {
                "tau": kendall_tau(means_before, means_after),
                "moved": sum(rank_before != rank_after for rank_before, rank_after in rank_pairs),
                "swapped": count_swapped(means_before, means_after),
            }
    return {"means": means, "order": order}


def _pool_curves(
    question: ReportQuestion, documents: Ints, before: Version, after: Version, changes: curves.ChangedLabels
) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """Return the growth curve and each measure's marginal contributions (DREAM, appendix H).

    Both are means over seeded orders in which the systems join the pool.
    """
    orders = curves.random_orders(len(question.systems), question.seed)
    sizes = curves.pool_sizes(changes, orders)
    weights = question.weights_of(question.queries)
    marginal = curves.marginal_contributions(documents, before, after, changes, orders, question.relevant_from, weights)
    names = ("holes", "holes_low", "holes_high", "rate", "low", "high")
    by_step, last_rates = curves.mean_bands(curves.growth_rates(sizes)), curves.last_growth_rates(changes)
    if len(last_rates) > 1:
        # The last rate is computed with each of the systems as the last to join, because ten orders
        # would be a poor sample (ADR 0035). Where one system alone finds every hole, there is no
        # rate: the others' rates of 0 would mean "saturated".
        by_step[-1] = (None, None, None) if np.isnan(last_rates).any() else curves.mean_bands(last_rates[:, None])[0]
    bands = zip(curves.mean_bands(sizes.astype(np.float64)), by_step, strict=True)
    growth = [
        {"systems": m, **dict(zip(names, (*size, *rate), strict=True))} for m, (size, rate) in enumerate(bands, 1)
    ]
    contribution = {
        key: [dict(zip(BAND, (m, *band), strict=True)) for m, band in enumerate(curves.mean_bands(contributions), 1)]
        for key, contributions in marginal.items()
    }
    return growth, contribution
