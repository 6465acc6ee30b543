"""Stability of an order of systems: which pairs of systems unjudged documents can still swap. Pure.

The measure is nDCG@k with linear gain, averaged over queries. Queries are judged independently of
each other, so the extreme of a mean is the mean of the extremes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from benchmark.bounds.bounds import Floats, Integers, ideal_dcg, largest_ndcg, smallest_ndcg
from benchmark.measures.arrays import dcg_discounts, divide_or_zero
from benchmark.measures.pooling import Judged, Rankings
from benchmark.significance.query_weights import weights_by_count

EPSILON = 1e-9  # A smaller difference of means counts as none.
CHUNK = 100  # Queries whose problems are solved together.
MOST = 2_000  # Pairs that a report lists, of those that could settle an order.

# Query and document of an unjudged pair, and how far its grade can move the open differences, summed over them.
Influence = tuple[int, int, float]
ProgressCallback = Callable[[int, int], None]  # Steps done, and steps in all.


@dataclass(frozen=True, slots=True)
class BoundsPool:
    """The pool of one query: how its unjudged documents count in each ranking."""

    query: int
    share: float  # Weight of the query in the mean; on average 1.
    documents: Integers  # (unjudged,) of the pool.
    weights: Floats  # (runs, unjudged) discounts of ranks; 0: not in the top k.
    gained: Floats  # (runs,) DCG of the judged documents of the top k.
    counts: Integers  # (grades,) of all judged documents, returned or not.
    judged: Floats  # (runs,) share of the documents returned.


def pool_of(
    query: int, ranked: Sequence[Integers], judged: Judged, grade_gains: Floats, k: int, share: float = 1.0
) -> BoundsPool:
    """Build the pool of a query. `ranked`: each run's documents, best first; `share`: its weight in the mean."""
    judged_documents, grades = judged.get(query, (np.empty(0, np.int64), np.empty(0, np.int16)))
    tops = [np.asarray(documents[:k], dtype=np.int64) for documents in ranked]
    # Only documents that some run returned in its top k: others change the ideal alone.
    documents = np.unique(np.concatenate(tops)) if tops else np.empty(0, np.int64)
    weights = np.zeros((len(tops), len(documents)))
    for row, top in enumerate(tops):
        weights[row, np.searchsorted(documents, top)] = dcg_discounts(k)[: len(top)]
    # Both are ascending; the position of a document behind the last judged one would be out of range.
    positions = np.minimum(np.searchsorted(judged_documents, documents), max(len(judged_documents) - 1, 0))
    is_judged, gain = np.zeros(len(documents), dtype=bool), np.empty(0)
    if len(judged_documents):
        is_judged = judged_documents[positions] == documents
        gain = grade_gains[grades[positions[is_judged]]]
    returned = (weights > 0).sum(axis=1)
    judged_share = (weights[:, is_judged] > 0).sum(axis=1) / np.maximum(returned, 1)
    counts = np.bincount(grades, minlength=len(grade_gains)).astype(np.int64)
    return BoundsPool(
        query=query,
        share=share,
        documents=documents[~is_judged],
        weights=weights[:, ~is_judged],
        gained=weights[:, is_judged] @ gain,
        counts=counts,
        judged=judged_share,
    )


def compute_bounds(
    rankings: Rankings,
    judged: Judged,
    top: int,
    k: int = 10,
    report_progress: ProgressCallback = lambda done, total: None,
    counts_by_query: Mapping[int, float] | None = None,
) -> dict[str, Any]:
    """Return the bounds of every run, the unsettled orders, and the pairs that could settle them, as a report has them.

    `systems`: the current nDCG@k of each run, the share of its top k that is judged, and the lowest
    and highest nDCG@k that it can reach. `unjudged`: the number of pairs in the pool without a
    grade. `unsettled`: pairs of runs whose order some completion reverses. `first`: unjudged pairs,
    the most informative first, at most MOST.

    `top`: the highest grade; no judged grade may be above it. Means are over the judged queries, or
    over all queries of the runs where none is judged. `counts_by_query`: how often each query was asked, by which
    the means are weighted; None: plain means.
    """
    runs = list(rankings)
    # An imported version may contain a query without any grade, which neither trec_eval nor a report counts.
    queries = sorted(query for query, (documents, _grades) in judged.items() if len(documents))
    queries = queries or sorted({query for ranking in rankings.values() for query in ranking})
    # Linear gain, as trec_eval's ndcg_cut has it.
    grade_gains, no_documents = np.arange(top + 1, dtype=np.float64), np.empty(0, np.int64)
    counts_asked = [1.0 if counts_by_query is None else counts_by_query.get(query) for query in queries]
    pools = [
        pool_of(query, [rankings[run].get(query, no_documents) for run in runs], judged, grade_gains, k, float(share))
        for query, share in zip(queries, weights_by_count(counts_asked), strict=True)
    ]
    # Two passes over the pools: bounds, and then the pairs that matter.
    steps, done = 2 * len(pools), 0
    low, high, today = np.zeros(len(runs)), np.zeros(len(runs)), np.zeros(len(runs))
    # ADR 0034: leads that two simple completions attain show most open pairs to be open, without the dynamic program.
    lead = np.zeros((len(runs), len(runs)))
    for start in range(0, len(pools), CHUNK):
        batch = pools[start : start + CHUNK]
        const = np.concatenate([pool.gained for pool in batch])
        counts = np.concatenate([np.repeat(pool.counts[None, :], len(runs), axis=0) for pool in batch])
        weights, sizes = _stack_weights([pool.weights for pool in batch], k)
        problems = (const, weights, sizes, counts, grade_gains, k)
        shares = np.array([pool.share for pool in batch])[:, None]
        low += (smallest_ndcg(*problems)[0].reshape(-1, len(runs)) * shares).sum(axis=0)
        high += (largest_ndcg(*problems)[0].reshape(-1, len(runs)) * shares).sum(axis=0)
        today += (divide_or_zero(const, ideal_dcg(counts, grade_gains, k)).reshape(-1, len(runs)) * shares).sum(axis=0)
        lead += sum(_attained_leads(pool, grade_gains, k) * pool.share for pool in batch)
        report_progress(done := done + len(batch), steps)
    count = max(len(pools), 1)
    unsettled = _find_open_orders(pools, grade_gains, k, low / count, high / count, lead / count)
    first = _rank_informative_pairs(pools, unsettled, grade_gains, k, lambda n: report_progress(done + n, steps))
    judged_shares = sum((pool.judged * pool.share for pool in pools), np.zeros(len(runs))) / count
    systems = [
        {
            "run": run,
            "judged": float(judged_shares[n]),
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
        "unsettled": [(runs[pair[0]], runs[pair[1]]) for pair in unsettled],
        "first": first,
        "settled": comb(len(systems), 2) - len(unsettled),
    }


def _stack_weights(pools: Sequence[Floats], k: int) -> tuple[Floats, Integers]:
    """Stack (runs, unjudged) weights of queries as rows of 3k, descending; also return how many of each row count."""
    stacks, sizes = [], []
    for weights in pools:
        # Of documents that only the ideal contains k are as good as more; two runs have at most 2k others.
        is_zero = weights == 0
        is_spare = is_zero & (np.cumsum(is_zero, axis=1) > k)
        sizes.append((~is_spare).sum(axis=1))
        ordered = -np.sort(np.where(is_spare, np.inf, -weights), axis=1)[:, : 3 * k]
        stacks.append(np.zeros((len(weights), 3 * k)))
        stacks[-1][:, : ordered.shape[1]] = np.where(np.isfinite(ordered), ordered, 0.0)
    return np.concatenate(stacks), np.concatenate(sizes)


def _attained_leads(pool: BoundsPool, grade_gains: Floats, k: int) -> Floats:
    """Return (runs, runs) a lead of one run over another that one of two simple completions attains.

    In the first completion nothing more is relevant. In the second every document that counts more for the leading run
    has the highest grade.
    """
    gain_differences = pool.gained[:, None] - pool.gained[None, :]
    counts = np.repeat(pool.counts[None, :], k + 1, axis=0)
    counts[:, -1] += np.arange(k + 1)
    ideals = ideal_dcg(counts, grade_gains, k)
    current_leads = gain_differences / ideals[0] if ideals[0] > 0 else np.zeros_like(gain_differences)
    if not len(pool.documents):
        return np.asarray(current_leads)
    # The highest grade goes to each document that counts more for the leading run; k of them fill
    # the ideal, and further ones do not raise it.
    weight_differences = pool.weights[:, None, :] - pool.weights[None, :, :]
    relevant_counts = np.minimum((weight_differences > 0).sum(axis=2), k)
    gained = gain_differences + grade_gains[-1] * np.maximum(weight_differences, 0.0).sum(axis=2)
    best_ideals = np.where(ideals[relevant_counts] > 0, ideals[relevant_counts], 1.0)
    return np.asarray(np.maximum(current_leads, gained / best_ideals))


def _find_open_orders(
    pools: Sequence[BoundsPool], grade_gains: Floats, k: int, low: Floats, high: Floats, lead: Floats
) -> list[tuple[int, int]]:
    """Return pairs of runs that can swap. What cheap bounds leave open is computed exactly."""

    def can_lead(leader: int, follower: int) -> bool:
        if lead[leader, follower] > EPSILON:
            return True
        # The largest lead of a mean over all completions takes a dynamic program, which is run only
        # where the attained lead says nothing. Only the weights of documents differ between two runs.
        const = np.array([pool.gained[leader] - pool.gained[follower] for pool in pools])
        counts = np.stack([pool.counts for pool in pools])
        weights, sizes = _stack_weights([(pool.weights[leader] - pool.weights[follower])[None, :] for pool in pools], k)
        leads = largest_ndcg(const, weights, sizes, counts, grade_gains, k)[0]
        return float((leads * np.array([pool.share for pool in pools])).mean()) > EPSILON

    return [
        (first, second)
        for first, second in combinations(range(len(low)), 2)
        # Disjoint bounds settle an order without the costlier checks.
        if low[first] < high[second]
        and low[second] < high[first]
        and can_lead(first, second)
        and can_lead(second, first)
    ]


def _rank_informative_pairs(
    pools: Sequence[BoundsPool],
    unsettled: Sequence[tuple[int, int]],
    grade_gains: Floats,
    k: int,
    report_progress: Callable[[int], None],
) -> list[Influence]:
    """Return unjudged pairs by how far one grade moves the unsettled differences, the largest first."""
    if not unsettled:
        return []
    first, second = (np.array(side) for side in zip(*unsettled, strict=True))
    influences: list[Influence] = []
    for number, pool in enumerate(pools, 1):
        # The ideal of each grade with one more document of that grade. ADR 0034: everything else
        # stays as it is today, because a pair's true worth depends on grades that are not known yet.
        counts = pool.counts[None, :] + np.eye(len(grade_gains), dtype=np.int64)
        counts[0] = pool.counts
        ideals = ideal_dcg(counts, grade_gains, k)
        inverse = divide_or_zero(np.ones_like(ideals), ideals)
        gain_differences = (pool.gained[first] - pool.gained[second])[:, None]
        weight_differences = pool.weights[first] - pool.weights[second]
        # (orders, unjudged) the largest change of the difference of nDCG@k by one more grade.
        largest = np.zeros_like(weight_differences)
        for grade in range(1, len(grade_gains)):
            # The ideal changes for both runs, the gain only for a run that returned the document.
            by_ideal = gain_differences * (inverse[grade] - inverse[0])
            by_gain = weight_differences * grade_gains[grade] * inverse[grade]
            np.maximum(largest, np.abs(by_ideal + by_gain), out=largest)
        values = largest.sum(axis=0) * pool.share / len(pools)
        pairs = zip(pool.documents.tolist(), values.tolist(), strict=True)
        influences += [(pool.query, document, value) for document, value in pairs if value > 0]
        if number % CHUNK == 0 or number == len(pools):
            # Truncated every CHUNK queries to save memory.
            influences = sorted(influences, key=lambda influence: (-influence[2], *influence))[:MOST]
            report_progress(number)
    return influences
