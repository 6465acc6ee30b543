"""Exact bounds of a ranking's nDCG while pairs are unjudged, over every way to judge them. Pure.

A completion gives each unjudged document of a query a grade from 0 to the highest. nDCG@k is a ratio: what the ranking
gains over what the best order of all graded documents gains, and the ideal changes with the completion, so neither
"all relevant" nor "none relevant" need be the extreme. Of all completions with the same grades the best one gives the
highest grades to the documents that count most, so a completion is a multiset of grades. The largest ratio over
multisets is found by Dinkelbach's iteration (Dinkelbach 1967, On nonlinear fractional programming): maximise
numerator - t x ideal by dynamic programming over grades from the highest to the lowest, set t to the ratio that this
gives, repeat until nothing is gained. Each step gives an attained ratio, so the bounds are exact for any k and scale.

The same function serves one ranking (a document's weight is the discount of its rank) and the difference of two.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.measures.arrays import dcg_discounts, divide_or_zero

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# (problems,) ratios, and (problems, weights) the grades that reach them, in the order of the weights.
Extremes = tuple[Floats, Integers]
TINY = 1e-12


def ideal_dcg(counts: Integers, grade_gains: Floats, k: int) -> Floats:
    """Return (problems,) the DCG of the best order, cut at k. `counts`: (problems, grades) documents of each grade."""
    reach = np.concatenate([[0.0], np.cumsum(dcg_discounts(k))])
    # The best order takes documents from the highest grade down until k ranks are filled.
    from_top = np.minimum(np.cumsum(counts[:, ::-1], axis=1), k)
    taken = np.diff(reach[from_top], axis=1, prepend=0.0)
    return np.asarray((taken * grade_gains[::-1]).sum(axis=1))


def largest_ndcg(
    const: Floats, weights: Floats, sizes: Integers, counts: Integers, grade_gains: Floats, k: int
) -> Extremes:
    """Return the largest (const + sum of weights x gains) / ideal over all grades of the unjudged documents.

    Many problems are solved at once. `const`: (problems,) the contribution of the judged documents.
    `weights`: (problems, most) of the unjudged documents, descending, of which the first `sizes`
    (problems,) count; a document that only the ideal contains has weight 0 (k of them are as good
    as more). `counts`: (problems, grades) judged documents by grade. `grade_gains`: (grades,) ascending,
    from 0. An ideal of 0 makes the ratio 0.
    """
    # Dinkelbach's iteration: the largest a/b is found by maximising a - ratio x b, with a ratio
    # that grows until it no longer changes.
    ratio = divide_or_zero(const, ideal_dcg(counts, grade_gains, k))
    # A problem is open until an iteration gains nothing; one without unjudged documents never is.
    grades = np.zeros((len(const), weights.shape[1]), dtype=np.int64)
    open_ = np.flatnonzero(sizes)
    while len(open_):
        candidates = _best_grades(weights[open_], sizes[open_], counts[open_], grade_gains, k, ratio[open_])
        # The ratio that these grades give.
        is_unjudged = np.arange(weights.shape[1]) < sizes[open_, None]
        added_counts = np.stack(
            [((candidates == grade) & is_unjudged).sum(axis=1) for grade in range(len(grade_gains))], axis=1
        )
        sums = const[open_] + np.where(is_unjudged, weights[open_] * grade_gains[candidates], 0.0).sum(axis=1)
        new_ratio = divide_or_zero(sums, ideal_dcg(counts[open_] + added_counts, grade_gains, k))
        # TINY, because in exact arithmetic the ratio would stop changing at the end, and floats may creep.
        is_better = new_ratio > ratio[open_] + TINY
        open_, candidates = open_[is_better], candidates[is_better]
        ratio[open_], grades[open_] = new_ratio[is_better], candidates
    return ratio, grades


def _best_grades(
    weights: Floats, sizes: Integers, counts: Integers, grade_gains: Floats, k: int, ratio: Floats
) -> Integers:
    """Return (problems, most) grades that maximise sum of weights x gains - ratio x ideal.

    From the highest grade down: `best[:, n]` is the best so far with the first n documents graded
    this high or higher. Giving the next m documents the current grade adds their weights, and fills
    ranks of the ideal after those of higher grades.
    """
    problems, most = weights.shape
    before = np.concatenate([np.zeros((problems, 1)), np.cumsum(weights, axis=1)], axis=1)
    reach = np.concatenate([[0.0], np.cumsum(dcg_discounts(k))])
    numbers = np.arange(most + 1)
    # best[n]: the largest value with n documents graded from this grade up; -inf where n cannot be.
    best = np.full((problems, most + 1), -np.inf)
    best[:, 0] = 0.0
    steps: list[Integers] = []
    above = np.zeros(problems, dtype=np.int64)
    # From the highest grade down: the ideal fills in this order, so what a grade adds depends only
    # on how many documents have higher grades.
    for grade in range(len(grade_gains) - 1, 0, -1):
        upto = above + counts[:, grade]
        # What n documents graded this high or higher have filled of the ideal, before and after this grade.
        start = reach[np.minimum(above[:, None] + numbers, k)]
        end = reach[np.minimum(upto[:, None] + numbers, k)]
        above_terms = best - grade_gains[grade] * (before - ratio[:, None] * start)
        # The best number of documents above for each n: the position of the largest value so far, along each row.
        improvements = np.where(above_terms >= np.maximum.accumulate(above_terms, axis=1), numbers, 0)
        origin = np.maximum.accumulate(improvements, axis=1)
        grade_term = grade_gains[grade] * (before - ratio[:, None] * end)
        best = np.take_along_axis(above_terms, origin, axis=1) + grade_term
        # A query has only so many unjudged documents.
        best[numbers[None, :] > sizes[:, None]] = -np.inf
        steps.append(origin)
        above = upto
    ends, grades = best.argmax(axis=1), np.zeros((problems, most), dtype=np.int64)
    # Back from the lowest grade: each step says how many documents had been graded before it.
    for grade, origin in zip(range(1, len(grade_gains)), reversed(steps), strict=True):
        starts = origin[np.arange(problems), ends]
        grades[(numbers[:most] >= starts[:, None]) & (numbers[:most] < ends[:, None])] = grade
        ends = starts
    return grades


def smallest_ndcg(
    const: Floats, weights: Floats, sizes: Integers, counts: Integers, grade_gains: Floats, k: int
) -> Extremes:
    """Return the smallest ratio with the grades that give it; arguments as for `largest_ndcg`."""
    # The smallest of x is the largest of -x: negated, the weights descend when each row is read backwards.
    ratio, grades = largest_ndcg(-const, _reverse_rows(-weights, sizes), sizes, counts, grade_gains, k)
    return -ratio, _reverse_rows(grades, sizes)


def _reverse_rows(rows: Any, sizes: Integers) -> Any:
    """Reverse the first `sizes` values of each row."""
    positions = np.arange(rows.shape[1])
    order = np.where(positions < sizes[:, None], sizes[:, None] - 1 - positions, positions)
    return np.take_along_axis(rows, order, axis=1)
