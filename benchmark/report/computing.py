"""A report from arrays: two qrels versions, some runs. Pure. Shape: docs/workshop.md."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmark.report import curves, measures, verdict
from benchmark.report.graded_runs import NONE, Floats, Ints, Judgments, Rankings, Version, encode_pairs, stack_rankings
from benchmark.significance.tests import Values, add_tests, count_swapped, kendall_tau, mean_changes, rank_means

VERSION = 3  # Of the result's shape and of how it is computed: part of a report's key.
STEPS = 5  # What `progress` counts.
BAND = ("systems", "value", "low", "high")


@dataclass(frozen=True)
class ReportSystem:
    """A run that takes part."""

    run: int
    name: str
    kind: str
    rankings: Rankings


@dataclass(frozen=True)
class Aspected:
    """Values over the queries that have aspects; they depend on no version of the qrels."""

    queries: list[int]
    values: Mapping[str, Floats]  # Measure to (systems, queries).
    k: int  # Where their measures cut: not always where the others do.


@dataclass(frozen=True)
class ReportQuestion:
    """All that a report depends on."""

    systems: Sequence[ReportSystem]
    before: Judgments
    after: Judgments
    k: int
    relevant_from: int = 1
    seed: int = 0
    aspects: Aspected | None = None

    @cached_property
    def queries(self) -> list[int]:
        """The queries that either version grades, or else the runs'; one that a version lacks counts 0 in it."""
        graded = self.before.keys() | self.after.keys()
        # Without any judged query the runs' own queries stand in, so that bounds of an unjudged pool can be computed.
        return sorted(graded or {query for system in self.systems for query in system.rankings})


def compute_report(
    asked: ReportQuestion, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[dict[str, Any], dict[str, Values]]:
    """Compute the whole report: the result as JSON, and each query's values by measure.

    `progress(done, total)` is called between its steps.
    """
    progress(0, STEPS)
    documents = stack_rankings([system.rankings for system in asked.systems], asked.queries, asked.k)
    # Pairs as one number each: looking millions of them up is then one search in a sorted array.
    codes = encode_pairs(documents)
    before, after = (Version.of(found, asked.queries) for found in (asked.before, asked.after))
    grades = [measures.Graded(documents, one.look_up(codes), one, asked.relevant_from) for one in (before, after)]
    values = {"hole": Values(None, measures.hole_at_k(*grades))}
    values |= {key: Values(*map(measure, grades)) for key, measure in measures.BY_VERSION.items()}
    progress(1, STEPS)
    names = [system.name for system in asked.systems]
    told = _compare_systems(values, measures.RANKING, names, asked.seed)
    if (about := asked.aspects) is not None and about.queries:
        # Tested apart: over other queries, so with random signs of their own.
        own = {key: Values(None, found) for key, found in about.values.items()}
        values |= own
        told |= _compare_systems(own, tuple(own), names, asked.seed)
    progress(2, STEPS)
    found = curves.changed_labels(documents, before, after, asked.relevant_from)
    growth, contribution = _pool_curves(asked, documents, before, after, found)
    progress(4, STEPS)
    holes = int(found.is_hole.sum())
    relevant = {name: one.at_least(asked.relevant_from) for name, one in (("before", before), ("after", after))}
    result = {
        "version": VERSION,
        "k": asked.k,
        "seed": asked.seed,
        "relevant_from": asked.relevant_from,
        "queries": asked.queries,
        "queries_before": len(asked.before),
        "queries_after": len(asked.after),
        "judged": {"before": len(before.codes), "after": len(after.codes)},
        "relevant": {name: int(of_query.sum()) for name, of_query in relevant.items()},
        "no_relevant": {name: int((of_query == 0).sum()) for name, of_query in relevant.items()},
        "holes": holes,
        "holes_in_unjudged_queries": curves.holes_in_unjudged_queries(found, before),
        "measures": list(values),
        "systems": [_system_document(system, place, documents, told) for place, system in enumerate(asked.systems)],
        **_over_systems(told, values),
        "common": _common_queries(asked, documents, values, names),
        "orders": curves.ORDERS,
        "growth": growth,
        "marginal": contribution,
        "verdict": verdict.saturation_verdict(
            len(names),
            holes,
            growth[-1]["rate"] if growth else None,
            {key: points[-1]["value"] if points else None for key, points in contribution.items()},
        ),
        "aspects": {"queries": about.queries, "k": about.k} if about is not None and about.queries else None,
    }
    progress(STEPS, STEPS)
    return result, values


def _common_queries(
    asked: ReportQuestion, documents: Ints, values: Mapping[str, Values], names: list[str]
) -> dict[str, Any]:
    """The figures over queries that every system answered and every version judges: no 0 there stands for a gap.

    Without `systems`: these are all queries, or none.
    """
    # A version that judges nothing would leave no query in common.
    versions = [found for found in (asked.before, asked.after) if found]
    is_judged = np.array([all(query in found for found in versions) for query in asked.queries])
    places = np.flatnonzero(is_judged & (documents != NONE).any(axis=2).all(axis=0))
    # With all or none of the queries the figures would only repeat the others, or be empty.
    if len(places) in (0, len(asked.queries)):
        return {"queries": len(places)}
    some = {key: values[key].of(places) for key in ("hole", *measures.BY_VERSION)}
    told = _compare_systems(some, measures.RANKING, names, asked.seed)
    systems = [{key: rows[place] for key, rows in told.items()} for place in range(len(names))]
    return {"queries": len(places), "systems": systems, **_over_systems(told, some)}


def _compare_systems(
    values: Mapping[str, Values], ranking: Sequence[str], names: list[str], seed: int
) -> dict[str, list[dict[str, Any]]]:
    """Means by measure and system; tests, ranks and letters of measures that order systems."""
    told = {key: mean_changes(one) for key, one in values.items()}
    add_tests(told, {key: values[key] for key in ranking}, names, seed)
    return told


def _over_systems(told: Mapping[str, Any], values: Mapping[str, Values]) -> dict[str, Any]:
    """The unweighted means over the systems, and how their order moved: Kendall's tau, moved ranks, swapped pairs."""
    means, order = {}, {}
    for key, rows in told.items():
        means[key] = {
            name: None if rows[0][name] is None else float(np.mean([row[name] for row in rows]))
            for name in ("before", "after", "change")
        }
    for key in measures.RANKING:
        moves: dict[str, float | None] = {"tau": None, "moved": 0, "swapped": 0}
        if (before := values[key].before) is not None:
            # Means that differ by rounding alone share a rank, so nothing moves between them.
            then, now = (found.mean(axis=1).tolist() for found in (before, values[key].after))
            moved = sum(one != other for one, other in zip(rank_means(then), rank_means(now), strict=True))
            moves = {"tau": kendall_tau(then, now), "moved": moved, "swapped": count_swapped(then, now)}
        order[key] = moves
    return {"means": means, "order": order}


def _system_document(system: ReportSystem, place: int, documents: Ints, told: Mapping[str, Any]) -> dict[str, Any]:
    returned = (documents[place] != NONE).sum(axis=1)
    return {
        "run": system.run,
        "name": system.name,
        "kind": system.kind,
        "missing": int((returned == 0).sum()),
        "short": int(((returned > 0) & (returned < documents.shape[2])).sum()),
        "values": {key: rows[place] for key, rows in told.items()},
    }


def _pool_curves(
    asked: ReportQuestion, documents: Ints, before: Version, after: Version, found: curves.Changed
) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """Return the growth curve and each measure's marginal contributions (DREAM, appendix H).

    Both are means over seeded orders in which the systems join the pool.
    """
    orders = curves.random_orders(len(asked.systems), asked.seed)
    sizes = curves.pool_sizes(found, orders)
    marginal = curves.marginal_contributions(documents, before, after, found, orders, asked.relevant_from)
    names = ("holes", "holes_low", "holes_high", "rate", "low", "high")
    by_step, last = curves.mean_bands(curves.growth_rates(sizes)), curves.last_growth_rates(found)
    if len(last) > 1:
        # The last rate is computed over all systems, each as the last to join: ten orders sample it
        # badly (ADR 0035). Where one system alone finds every hole it is none: the others' rates of
        # 0 would say "saturated".
        by_step[-1] = (None, None, None) if np.isnan(last).any() else curves.mean_bands(last[:, None])[0]
    bands = zip(curves.mean_bands(sizes.astype(np.float64)), by_step, strict=True)
    growth = [
        {"systems": m, **dict(zip(names, (*size, *rate), strict=True))} for m, (size, rate) in enumerate(bands, 1)
    ]
    contribution = {
        key: [dict(zip(BAND, (m, *band), strict=True)) for m, band in enumerate(curves.mean_bands(one), 1)]
        for key, one in marginal.items()
    }
    return growth, contribution
