"""Samples of the queries of a log, by how often each was asked: seeded, without replacement. Pure."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
STRATA = ("head", "torso", "tail")


def draw_sample(counts: Ints, size: int, by: str, seed: int) -> Ints:
    """Return the positions of `size` queries, ascending. `counts`: (queries,) of at least 1, for no fewer queries.

    The result depends on the order of the queries, which must be that of their texts and not of a file.
    """
    random = np.random.default_rng(seed)
    if by == "pptss":
        return np.sort(_draw_by_size(counts, size, random))
    if by == "head-torso-tail":
        members = [np.flatnonzero(strata_of(counts) == number) for number in range(len(STRATA))]
        quotas = share_out(size, [len(positions) for positions in members])
        drawn = [random.choice(*pair, replace=False) for pair in zip(members, quotas, strict=True) if pair[1]]
        return np.sort(np.concatenate(drawn))
    return np.sort(random.choice(len(counts), size, replace=False))


def _draw_by_size(counts: Ints, size: int, random: np.random.Generator) -> Ints:
    """Draw by systematic sampling with probability proportional to size, in random order.

    Madow 1949 (Annals of Mathematical Statistics 20). A query is drawn with exactly the probability size x count / sum
    of counts; queries for which that is 1 or more are all taken, and the others share the rest (Särndal, Swensson and
    Wretman 1992, section 3.6.2).
    """
    is_certain = find_certain(counts, size)
    left, total = size - int(is_certain.sum()), int(counts[~is_certain].sum())
    if not left:
        return np.flatnonzero(is_certain)
    order = random.permutation(np.flatnonzero(~is_certain))
    start = int(random.integers(total))
    # Every total / left of the traffic a query is taken, from a random start on.
    ticks = np.array([(start + step * total) // left for step in range(left)], dtype=np.int64)
    drawn = order[np.searchsorted(np.cumsum(counts[order]), ticks, side="right")]
    return np.concatenate([np.flatnonzero(is_certain), drawn])


def find_certain(counts: Ints, size: int) -> NDArray[np.bool_]:
    """Return which queries a sample in proportion to the counts takes for certain: they alone count too little in a
    plain mean of the sample, 1 / `size` each in place of their share of the traffic.
    """
    is_certain = np.zeros(len(counts), dtype=np.bool_)
    while True:
        left, total = size - int(is_certain.sum()), int(counts[~is_certain].sum())
        # Whole numbers throughout, so that no rounding draws a query twice.
        more = ~is_certain & (counts * left >= total)
        if not left or not more.any():
            return is_certain
        is_certain |= more


def strata_of(counts: Ints) -> Ints:
    """Return each query's stratum: 0 head, 1 torso, 2 tail, each with about a third of the traffic.

    Queries are ordered by count, the most frequent first; a query belongs where its own traffic begins.
    """
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    strata = np.empty(len(counts), dtype=np.int64)
    strata[order] = before * len(STRATA) // counts.sum()
    return strata


def share_out(size: int, capacities: Sequence[int]) -> list[int]:
    """Return equal shares of `size`; what a stratum is too small for goes to the others, the first ones first."""
    quotas = [0] * len(capacities)
    while size:
        open_strata = [number for number, capacity in enumerate(capacities) if quotas[number] < capacity]
        share, rest = divmod(size, len(open_strata))
        for rank, number in enumerate(open_strata):
            added = min(share + (rank < rest), capacities[number] - quotas[number])
            quotas[number] += added
            size -= added
    return quotas
