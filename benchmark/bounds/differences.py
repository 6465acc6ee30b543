"""Bounds of the difference of two rankings by a measure, while documents are unjudged. Pure.

A query's unjudged documents are those that one of the two rankings returns within the measure's depth and that have
no grade. Each way to judge them gives a difference, new minus old; `least` and `most` are the extremes of these:

- nDCG@k: exact, by benchmark.bounds.bounds, whose ratio serves the difference of two rankings.
- P@k is linear: every document that only one of the rankings returns counts for or against.
- R@k: for the largest difference all documents that only the new ranking returns are relevant. Documents of both only
  enlarge the denominator, so they are relevant where the difference is negative even then.
- RR and Hit@k: one relevant document suffices, because a further one can only help the other ranking.
- AP: the difference of two APs has no such form. Its bounds are those of each ranking alone, subtracted: they hold, and
  may be wider than what judgments can reach. The AP of one ranking is extreme where relevant documents stand as high,
  or as low, as they can, for one of the numbers of them.

Queries are judged independently of each other, so that all of them can be extreme at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark.bounds.bounds import Floats, Integers, ideal_dcg, largest_ndcg, smallest_ndcg
from benchmark.measures.arrays import dcg_discounts, divide_or_zero
from benchmark.measures.pooling import Judged
from benchmark.measures.rankings import parse_measures
from corpus.errors import BadInput, BadOption

EPSILON = 1e-9  # A smaller difference counts as none.
CHUNK = 100  # Queries whose nDCG is bounded together.
NO_DOCUMENTS = np.empty(0, np.int64)
Masks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BoundedMeasure:
    """A measure that has bounds: its name in ir_measures, cutoff (None: the whole ranking), and what is relevant."""

    kind: str
    k: int | None
    relevant_from: int
    is_exponential: bool = False  # nDCG with the gain 2^grade - 1.

    @property
    def is_exact(self) -> bool:
        """Return whether judgments can reach its bounds."""
        return self.kind != "AP"


@dataclass(frozen=True, slots=True)
class PairedTop:
    """The first k documents of a new and an old ranking of one query, and what is known of their grades."""

    query: int
    documents: Integers  # (documents,) of both rankings, ascending.
    ranks: Integers  # (2, documents) from 1; 0: not among the first k.
    grades: Integers  # (documents,); -1: not judged.
    counts: Integers  # (grades,) of all judged documents, returned or not.

    @property
    def is_open(self) -> Masks:
        """Return which documents are unjudged."""
        return np.asarray(self.grades < 0)


@dataclass(frozen=True, slots=True)
class Differences:
    """A measure of two runs by query, (queries,) each; unjudged documents count as not relevant in `new` and `old`."""

    new: Floats
    old: Floats
    least: Floats  # The smallest new - old over all ways to judge the unjudged documents.
    most: Floats
    deciding: list[tuple[int, int]]  # Unjudged (query, document) whose grade can change the difference.
    positions: list[int]  # Of each deciding pair: its query's position in the arrays.
    is_exact: bool


# new, old, least, most, and (documents,) whether the grade of a document can change the difference.
QueryBounds = tuple[float, float, float, float, Masks]


def read_measures(text: str, *, relevant_from: int, top: int) -> dict[str, BoundedMeasure]:
    """Return the measures of a text, separated by blanks or commas, by name. Raises BadOption.

    `relevant_from`: the lowest relevant grade of measures that name none (rel=); `top`: the highest grade.
    """
    try:
        parsed = parse_measures(text)
    except BadInput as error:
        raise BadOption("measures", str(error)) from None
    measures: dict[str, BoundedMeasure] = {}
    for name, measure in parsed.items():
        parameters = dict(measure.params)
        k, dcg = parameters.pop("cutoff", None), parameters.pop("dcg", "log2")
        relevant = int(parameters.pop("rel", relevant_from))
        needs_cutoff = measure.NAME not in ("RR", "AP")
        if measure.NAME not in ("nDCG", *BY_QUERY) or parameters or (needs_cutoff and k is None):
            raise BadOption(
                "measures", f"{name} has no bounds here: use nDCG@k, R@k, P@k, Hit@k, RR@k, RR, AP@k or AP."
            )
        if relevant > top:
            raise BadOption("measures", f"{name} counts grades from {relevant}, and the highest grade here is {top}.")
        measures[name] = BoundedMeasure(measure.NAME, k, relevant, is_exponential=dcg == "exp-log2")
    return measures


def compare_rankings(
    measure: BoundedMeasure,
    new: Mapping[int, Integers],
    old: Mapping[int, Integers],
    judged: Judged,
    queries: Sequence[int],
    top: int,
) -> Differences:
    """Bound new - old for each of the queries. `new`, `old`: documents by query, best first; `top`: the highest grade.

    A query that a ranking lacks counts 0 there.
    """
    k = measure.k or max((len(documents) for ranking in (new, old) for documents in ranking.values()), default=1)
    tops = [
        pair_tops(query, new.get(query, NO_DOCUMENTS)[:k], old.get(query, NO_DOCUMENTS)[:k], judged, top)
        for query in queries
    ]
    if measure.kind == "nDCG":
        new_values, old_values, least, most = _bound_ndcg(tops, measure, top, k)
        masks = [paired.is_open for paired in tops]
    else:
        bound = BY_QUERY[measure.kind]
        rows = [bound(paired, measure.relevant_from, k) for paired in tops]
        new_values, old_values, least, most = (np.array([row[column] for row in rows]) for column in range(4))
        masks = [row[4] for row in rows]
    # Two equal rankings, for example, stay equal however their documents are judged.
    open_positions = np.flatnonzero(most - least > EPSILON).tolist()
    deciding = [
        (tops[position].query, int(document))
        for position in open_positions
        for document in tops[position].documents[masks[position]]
    ]
    positions = [position for position in open_positions for _document in range(int(masks[position].sum()))]
    return Differences(new_values, old_values, least, most, deciding, positions, measure.is_exact)


def pair_tops(query: int, new: Integers, old: Integers, judged: Judged, top: int) -> PairedTop:
    """Look up ranks and grades of the documents of two rankings, which are cut already."""
    documents = np.unique(np.concatenate([new, old])).astype(np.int64)
    ranks = np.zeros((2, len(documents)), dtype=np.int64)
    for row, ranking in enumerate((new, old)):
        ranks[row, np.searchsorted(documents, ranking)] = np.arange(1, len(ranking) + 1)
    judged_documents, judged_grades = judged.get(query, (NO_DOCUMENTS, np.empty(0, np.int16)))
    grades = np.full(len(documents), -1, dtype=np.int64)
    _common, positions, judged_positions = np.intersect1d(documents, judged_documents, return_indices=True)
    grades[positions] = judged_grades[judged_positions]
    return PairedTop(query, documents, ranks, grades, np.bincount(judged_grades, minlength=top + 1).astype(np.int64))


def _bound_ndcg(
    tops: Sequence[PairedTop], measure: BoundedMeasure, top: int, k: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return nDCG@k of both rankings, and the exact bounds of their difference, each (queries,)."""
    grades = np.arange(top + 1, dtype=np.float64)
    grade_gains = np.exp2(grades) - 1 if measure.is_exponential else grades
    discounts = np.concatenate([[0.0], dcg_discounts(k)])
    columns: list[Floats] = []
    for start in range(0, len(tops), CHUNK):
        batch = tops[start : start + CHUNK]
        counts = np.stack([paired.counts for paired in batch])
        gained = np.stack(
            [
                discounts[paired.ranks] @ grade_gains[np.maximum(paired.grades, 0)] for paired in batch
            ]  # grade_gains[0] is 0
        )
        sizes = np.array([paired.is_open.sum() for paired in batch], dtype=np.int64)
        weights = np.zeros((len(batch), int(sizes.max())))
        for row, paired in enumerate(batch):
            unjudged = discounts[paired.ranks[:, paired.is_open]]
            weights[row, : sizes[row]] = np.sort(unjudged[0] - unjudged[1])[::-1]
        problem = (gained[:, 0] - gained[:, 1], weights, sizes, counts, grade_gains, k)
        values = divide_or_zero(gained, ideal_dcg(counts, grade_gains, k)[:, None])
        columns.append(np.stack([values[:, 0], values[:, 1], smallest_ndcg(*problem)[0], largest_ndcg(*problem)[0]]))
    new, old, least, most = np.concatenate(columns, axis=1)
    return new, old, least, most


def _bound_precision(paired: PairedTop, relevant_from: int, k: int) -> QueryBounds:
    """Bound P@k."""
    is_returned, is_relevant = paired.ranks > 0, paired.grades >= relevant_from
    new, old = (is_returned & is_relevant).sum(axis=1) / k
    # A document of both rankings counts the same in both.
    only_new, only_old = (paired.is_open & is_returned & ~is_returned[::-1]).sum(axis=1) / k
    mask = paired.is_open & (is_returned[0] != is_returned[1])
    return new, old, new - old - only_old, new - old + only_new, mask


def _bound_recall(paired: PairedTop, relevant_from: int, k: int) -> QueryBounds:
    """Bound R@k."""
    is_returned, is_relevant = paired.ranks > 0, paired.grades >= relevant_from
    new_hits, old_hits = (is_returned & is_relevant).sum(axis=1)
    only_new, only_old = (paired.is_open & is_returned & ~is_returned[::-1]).sum(axis=1)
    in_both, relevant = (paired.is_open & is_returned.all(axis=0)).sum(), paired.counts[relevant_from:].sum()

    def largest(lead: int, added: int) -> float:
        lead, whole = lead + added, relevant + added + (0 if lead + added > 0 else in_both)
        return float(lead / whole) if whole else 0.0

    lead = new_hits - old_hits
    new, old = (hits / relevant if relevant else 0.0 for hits in (new_hits, old_hits))
    return new, old, -largest(-lead, only_old), largest(lead, only_new), paired.is_open


def _bound_first(paired: PairedTop, relevant_from: int, k: int, *, by_rank: bool) -> QueryBounds:
    """Bound the value of the first relevant document: 1 / its rank, or 1 (Hit@k)."""
    values = np.divide(1.0, paired.ranks, out=np.zeros(paired.ranks.shape), where=paired.ranks > 0)
    values = values if by_rank else np.ceil(values)
    today = values[:, paired.grades >= relevant_from].max(axis=1, initial=0.0)
    # With one more document relevant, for each that is unjudged.
    raised = np.maximum(values, today[:, None])
    differences = np.append((raised[0] - raised[1])[paired.is_open], today[0] - today[1])
    mask = paired.is_open & (raised > today[:, None]).any(axis=0)
    return today[0], today[1], differences.min(), differences.max(), mask


def _bound_reciprocal_rank(paired: PairedTop, relevant_from: int, k: int) -> QueryBounds:
    """Bound RR."""
    return _bound_first(paired, relevant_from, k, by_rank=True)


def _bound_hit(paired: PairedTop, relevant_from: int, k: int) -> QueryBounds:
    """Bound Hit@k, which ir_measures calls Success@k."""
    return _bound_first(paired, relevant_from, k, by_rank=False)


def _bound_average_precision(paired: PairedTop, relevant_from: int, k: int) -> QueryBounds:
    """Bound AP, by the bounds of each ranking alone."""
    relevant, unjudged = int(paired.counts[relevant_from:].sum()), int(paired.is_open.sum())
    bounds: list[tuple[float, float, float]] = []
    for ranks in paired.ranks:
        order = np.argsort(ranks)[np.count_nonzero(ranks == 0) :]
        is_relevant, positions = paired.grades[order] >= relevant_from, np.flatnonzero(paired.is_open[order])
        # Row m: m unjudged documents of this ranking are relevant too, the highest ones; reversed, the lowest ones.
        rows = np.repeat(is_relevant[None, :], len(positions) + 1, axis=0)
        rows[:, positions] = np.tri(len(positions) + 1, len(positions), -1, dtype=np.bool_)
        highest = _sum_precisions(rows)
        rows[:, positions] = rows[:, positions[::-1]]
        lowest, added = _sum_precisions(rows), np.arange(len(positions) + 1)
        # Unjudged documents that only the other ranking returns make an AP smaller where they are relevant.
        elsewhere = unjudged - len(positions)
        low = divide_or_zero(lowest, relevant + added + elsewhere).min()
        high = divide_or_zero(highest, relevant + added).max()
        bounds.append((float(highest[0] / relevant) if relevant else 0.0, float(low), float(high)))
    (new, new_low, new_high), (old, old_low, old_high) = bounds
    if np.array_equal(paired.ranks[0], paired.ranks[1]):
        return new, old, 0.0, 0.0, paired.is_open
    return new, old, new_low - old_high, new_high - old_low, paired.is_open


def _sum_precisions(rows: Masks) -> Floats:
    """Return for each row of relevant ranks the sum of the precisions at these ranks."""
    precisions = np.cumsum(rows, axis=1) / np.arange(1, rows.shape[1] + 1)
    return np.asarray((precisions * rows).sum(axis=1), dtype=np.float64)


BY_QUERY: dict[str, Callable[[PairedTop, int, int], QueryBounds]] = {
    "P": _bound_precision,
    "R": _bound_recall,
    "RR": _bound_reciprocal_rank,
    "Success": _bound_hit,
    "AP": _bound_average_precision,
}
