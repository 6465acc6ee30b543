"""Stability of an order of systems: which pairs of systems unjudged documents can still turn. Pure.

All is over nDCG@k with linear gain, averaged over queries; queries are judged independently of each
other, so the extreme of a mean is the mean of the extremes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from benchmark.bounds.bounds import Floats, Integers, ideal_dcg, largest_ndcg, smallest_ndcg
from benchmark.measures.pooling import Judged, Rankings
from benchmark.report.measures import dcg_discounts, divide_or_zero

EPSILON = 1e-9  # Of a mean: a smaller difference is none.
CHUNK = 100  # Queries whose problems are solved together.
MOST = 2_000  # Pairs that are named, of those that could settle an order.

# Query and document of an unjudged pair, and how far its grade can move the open differences, summed over them.
Influence = tuple[int, int, float]
Told = Callable[[int, int], None]  # How many steps of how many are done.


@dataclass(frozen=True, slots=True)
class BoundsPool:
    """The pool of one query: what its unjudged documents count in each ranking."""

    query: int
    documents: Integers  # (unjudged,) of the pool.
    weights: Floats  # (runs, unjudged) the discount of the rank; 0: not in the top k.
    gained: Floats  # (runs,) what the judged documents of the top k gain.
    counts: Integers  # (grades,) of all judged documents, returned or not.
    judged: Floats  # (runs,) share of the documents returned.


def pool_of(query: int, ranked: Sequence[Integers], judged: Judged, gains: Floats, k: int) -> BoundsPool:
    """The pool of a query. `ranked`: each run's documents, best first."""
    known, grades = judged.get(query, (np.empty(0, np.int64), np.empty(0, np.int16)))
    tops = [np.asarray(documents[:k], dtype=np.int64) for documents in ranked]
    # Only documents that some run returned in its top k: others change the ideal alone.
    documents = np.unique(np.concatenate(tops)) if tops else np.empty(0, np.int64)
    weights = np.zeros((len(tops), len(documents)))
    for row, top in enumerate(tops):
        weights[row, np.searchsorted(documents, top)] = dcg_discounts(k)[: len(top)]
    # Both are ascending; a document behind the last judged one would have a place outside.
    at = np.minimum(np.searchsorted(known, documents), max(len(known) - 1, 0))
    is_known = known[at] == documents if len(known) else np.zeros(len(documents), dtype=bool)
    gain = gains[grades[at[is_known]]] if len(known) else np.empty(0)
    returned = (weights > 0).sum(axis=1)
    share = (weights[:, is_known] > 0).sum(axis=1) / np.maximum(returned, 1)
    counts = np.bincount(grades, minlength=len(gains)).astype(np.int64)
    return BoundsPool(query, documents[~is_known], weights[:, ~is_known], weights[:, is_known] @ gain, counts, share)


def compute_bounds(
    rankings: Rankings, judged: Judged, top: int, k: int = 10, told: Told = lambda done, of: None
) -> dict[str, Any]:
    """Bounds of every run, the orders that are not settled, and the pairs that could settle them, as a report has them.

    `systems`: today's nDCG@k of each run, the share of its top k that is judged, and how low and
    high its nDCG@k can come. `unjudged`: pairs of the pool without a grade. `unsettled`: pairs of
    runs whose order some completion turns. `first`: unjudged pairs, the most informative first, at
    most MOST.

    `top`: the highest grade; a judged grade may not be above it. Means are over the queries that
    are judged, or over all that the runs have where none is. `told` hears of progress.
    """
    runs = list(rankings)
    # An imported version may hold a query without any grade; trec_eval counts no such query, and reports do not either.
    queries = sorted(query for query, (documents, _grades) in judged.items() if len(documents))
    queries = queries or sorted({query for ranking in rankings.values() for query in ranking})
    # Linear gain, as trec_eval's ndcg_cut has it.
    gains, none = np.arange(top + 1, dtype=np.float64), np.empty(0, np.int64)
    pools = [pool_of(query, [rankings[run].get(query, none) for run in runs], judged, gains, k) for query in queries]
    # Two passes over the pools: bounds, and then the pairs that matter.
    steps, done = 2 * len(pools), 0
    low, high, today = np.zeros(len(runs)), np.zeros(len(runs)), np.zeros(len(runs))
    # ADR 0034: leads that two simple completions attain show most open pairs to be open, without the dynamic program.
    lead = np.zeros((len(runs), len(runs)))
    for start in range(0, len(pools), CHUNK):
        part = pools[start : start + CHUNK]
        const = np.concatenate([pool.gained for pool in part])
        counts = np.concatenate([np.repeat(pool.counts[None, :], len(runs), axis=0) for pool in part])
        weights, sizes = _stack_weights([pool.weights for pool in part], k)
        problems = (const, weights, sizes, counts, gains, k)
        low += smallest_ndcg(*problems)[0].reshape(-1, len(runs)).sum(axis=0)
        high += largest_ndcg(*problems)[0].reshape(-1, len(runs)).sum(axis=0)
        today += divide_or_zero(const, ideal_dcg(counts, gains, k)).reshape(-1, len(runs)).sum(axis=0)
        lead += sum(_attained_leads(pool, gains, k) for pool in part)
        told(done := done + len(part), steps)
    count = max(len(pools), 1)
    unsettled = _find_open_orders(pools, gains, k, low / count, high / count, lead / count)
    first = _rank_informative_pairs(pools, unsettled, gains, k, lambda n: told(done + n, steps))
    share = sum((pool.judged for pool in pools), np.zeros(len(runs))) / count
    systems = [
        {
            "run": run,
            "judged": float(share[n]),
            "value": float(today[n] / count),
            "low": float(low[n] / count),
            "high": float(high[n] / count),
        }
        for n, run in enumerate(runs)
    ]
    return {
        "k": k,
        "queries": len(queries),
        "unjudged": sum(len(pool.documents) for pool in pools),
        "systems": systems,
        "unsettled": [(runs[one], runs[other]) for one, other in unsettled],
        "first": first,
        "settled": comb(len(systems), 2) - len(unsettled),
    }


def _stack_weights(pools: Sequence[Floats], k: int) -> tuple[Floats, Integers]:
    """Rows of 3k weights descending, and how many of each count, of (rows, unjudged) weights of several queries."""
    found, sizes = [], []
    for weights in pools:
        # Of documents that only the ideal knows k are as good as more; two runs have at most 2k others.
        zero = weights == 0
        spare = zero & (np.cumsum(zero, axis=1) > k)
        sizes.append((~spare).sum(axis=1))
        ordered = -np.sort(np.where(spare, np.inf, -weights), axis=1)[:, : 3 * k]
        found.append(np.zeros((len(weights), 3 * k)))
        found[-1][:, : ordered.shape[1]] = np.where(np.isfinite(ordered), ordered, 0.0)
    return np.concatenate(found), np.concatenate(sizes)


def _attained_leads(pool: BoundsPool, gains: Floats, k: int) -> Floats:
    """(runs, runs) by how much the one can lead the other, at least: what two simple completions attain.

    In the one nothing more is relevant; in the other every document that counts more for the one has the highest grade.
    """
    ahead = pool.gained[:, None] - pool.gained[None, :]
    counts = np.repeat(pool.counts[None, :], k + 1, axis=0)
    counts[:, -1] += np.arange(k + 1)
    ideals = ideal_dcg(counts, gains, k)
    today = ahead / ideals[0] if ideals[0] > 0 else np.zeros_like(ahead)
    if not len(pool.documents):
        return np.asarray(today)
    # The highest grade goes to each document that counts more for the one; k of them fill the
    # ideal, further ones do not raise it.
    apart = pool.weights[:, None, :] - pool.weights[None, :, :]
    more = np.minimum((apart > 0).sum(axis=2), k)
    gained = ahead + gains[-1] * np.maximum(apart, 0.0).sum(axis=2)
    best = np.where(ideals[more] > 0, ideals[more], 1.0)
    return np.asarray(np.maximum(today, gained / best))


def _find_open_orders(
    pools: Sequence[BoundsPool], gains: Floats, k: int, low: Floats, high: Floats, lead: Floats
) -> list[tuple[int, int]]:
    """Pairs of runs that can swap. What cheap bounds leave open is computed exactly."""

    def can_lead(one: int, other: int) -> bool:
        if lead[one, other] > EPSILON:
            return True
        # The most that a run's mean can lie above another's, over all completions: a dynamic
        # program, asked for only where the attained lead says nothing. Only the weights of
        # documents differ between two runs.
        const = np.array([pool.gained[one] - pool.gained[other] for pool in pools])
        counts = np.stack([pool.counts for pool in pools])
        weights, sizes = _stack_weights([(pool.weights[one] - pool.weights[other])[None, :] for pool in pools], k)
        return float(largest_ndcg(const, weights, sizes, counts, gains, k)[0].mean()) > EPSILON

    return [
        (one, other)
        for one, other in combinations(range(len(low)), 2)
        # Disjoint bounds settle an order at once, without the other looks.
        if low[one] < high[other] and low[other] < high[one] and can_lead(one, other) and can_lead(other, one)
    ]


def _rank_informative_pairs(
    pools: Sequence[BoundsPool],
    unsettled: Sequence[tuple[int, int]],
    gains: Floats,
    k: int,
    told: Callable[[int], None],
) -> list[Influence]:
    """Unjudged pairs by how far one grade moves the unsettled differences, most first."""
    if not unsettled:
        return []
    one, other = (np.array(side) for side in zip(*unsettled, strict=True))
    found: list[Influence] = []
    for number, pool in enumerate(pools, 1):
        values = _pair_influences(pool, one, other, gains, k) / len(pools)
        pairs = zip(pool.documents.tolist(), values.tolist(), strict=True)
        found += [(pool.query, document, value) for document, value in pairs if value > 0]
        if number % CHUNK == 0 or number == len(pools):
            found = sorted(found, key=lambda one: (-one[2], *one))[:MOST]  # cut now and then: memory
            told(number)
    return found


def _pair_influences(pool: BoundsPool, one: Integers, other: Integers, gains: Floats, k: int) -> Floats:
    """(unjudged,) summed over pairs of runs: the farthest that one more grade moves their difference of nDCG@k."""
    # What each grade's ideal would be with one more document of that grade. ADR 0034: everything
    # else stays as it is today, since a pair's true worth depends on grades that nobody knows yet.
    counts = pool.counts[None, :] + np.eye(len(gains), dtype=np.int64)
    counts[0] = pool.counts
    ideals = ideal_dcg(counts, gains, k)
    inverse = divide_or_zero(np.ones_like(ideals), ideals)
    ahead = (pool.gained[one] - pool.gained[other])[:, None]
    apart = pool.weights[one] - pool.weights[other]
    moved = np.zeros_like(apart)
    for grade in range(1, len(gains)):
        # The change of the difference: the ideal moves for both runs, the gain for the run that returned the document.
        shift = ahead * (inverse[grade] - inverse[0]) + apart * gains[grade] * inverse[grade]
        np.maximum(moved, np.abs(shift), out=moved)
    return np.asarray(moved.sum(axis=0))
