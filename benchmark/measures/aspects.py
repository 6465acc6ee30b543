"""Measures of a ranking over aspects: alpha-nDCG@k and weighted aspect recall@k (BRIGHT-Pro appendix C). Pure.

The paper maps a document to one aspect; here a document may support several, and its gain is the
sum over them. Both are measured: names that end in `-one` map each document to the heaviest of its
aspects, of equals to the first in the file. They are equal where no document supports two.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from benchmark.measures.rankings import MeasureResult, Run, rank_documents
from corpus.aspects.entries import importance_weights
from corpus.aspects.files import AspectRow, by_query
from corpus.errors import BadInput

ALPHA = 0.5  # The novelty penalty of the paper.
DEFAULT = ("alpha-nDCG@10", "A-Recall@10")
NEAR = 1e-12  # Gains nearer than this are equal: the same weights added in another order.
ONE = "-one"
_NAME = re.compile(r"(alpha-nDCG|A-Recall)(-one)?@([1-9][0-9]{0,3})")

Supports = Mapping[str, frozenset[int]]  # Document to the positions of the aspects that it supports.


@dataclass(frozen=True, slots=True)
class QueryAspects:
    """The aspects of a query: their weights, and which documents support them."""

    weights: Sequence[float]
    supports: Supports

    @classmethod
    def of(cls, aspects: Sequence[tuple[int, Iterable[str]]]) -> "QueryAspects":
        """Build from importances and documents; importances become weights that add up to 1."""
        supports: dict[str, set[int]] = {}
        for position, (_importance, documents) in enumerate(aspects):
            for document in documents:
                supports.setdefault(document, set()).add(position)
        frozen = {document: frozenset(positions) for document, positions in supports.items()}
        return cls(importance_weights([importance for importance, _documents in aspects]), frozen)

    def with_single_aspects(self) -> "QueryAspects":
        """Return a copy in which each document supports only the heaviest of its aspects."""
        single = {
            # Of equally heavy aspects the first: the `-one` form counts each document once.
            document: frozenset([min(positions, key=lambda position: (-self.weights[position], position))])
            for document, positions in self.supports.items()
        }
        return QueryAspects(self.weights, single)


def is_aspect_measure(name: str) -> bool:
    """Return whether a name is that of a measure of aspects, such as A-Recall@10."""
    return bool(_NAME.fullmatch(name))


def evaluate_aspects(rows: Sequence[AspectRow], run: Run, names: Sequence[str]) -> MeasureResult:
    """Evaluate every named measure and its `-one` form on each query of the file."""
    # The function of each measure, its cutoff, and whether each document counts for one aspect only.
    measures: dict[str, tuple[Measure, int, bool]] = {}
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            raise BadInput(f"{name!r} is not a measure of aspects. Use alpha-nDCG@k or A-Recall@k.")
        base, suffix, cutoff = match.groups()
        for form in (ONE,) if suffix else ("", ONE):
            measures[f"{base}{form}@{cutoff}"] = MEASURES[base], int(cutoff), bool(form)
    queries = {
        query: QueryAspects.of([(row.importance, row.documents) for row in aspect_rows])
        for query, aspect_rows in by_query(rows).items()
    }
    # Every value would be 0, which would look like the ranking's fault.
    if not any(aspects.supports for aspects in queries.values()):
        raise BadInput("No aspect in the file has a document. Add the documents that support each aspect.")
    per_query: dict[str, dict[str, float]] = {name: {} for name in measures}
    for query, aspects in queries.items():
        ranking, single = rank_documents(run.get(query, {})), aspects.with_single_aspects()
        for name, (measure, depth, is_single) in measures.items():
            per_query[name][query] = measure(ranking, single if is_single else aspects, depth)
    means = {name: float(np.mean(list(values.values()))) for name, values in per_query.items()}
    return MeasureResult(len(queries), sorted(query for query in queries if not run.get(query)), means, per_query)


def alpha_ndcg(
    ranking: Sequence[str], aspects: QueryAspects, cut: int, *, alpha: float = ALPHA, best: float | None = None
) -> float:
    """Return alpha-nDCG (equations 3 to 5); 0 without supporting documents. `best`: the ideal DCG, computed if None."""
    best = ideal_alpha_dcg(aspects, cut, alpha) if best is None else best
    return _alpha_dcg(ranking[:cut], aspects, alpha) / best if best else 0.0


def ideal_alpha_dcg(aspects: QueryAspects, cut: int, alpha: float = ALPHA) -> float:
    """Return the denominator of equation 5, built greedily: at each rank the document with the largest gain.

    Of documents with equal gains the last by id, as ties are broken everywhere.
    """
    # Sorted from the last id, so that `next` below takes the last of equal gains.
    candidates, times_covered = sorted(aspects.supports, reverse=True), [0] * len(aspects.weights)
    ranking: list[str] = []
    while candidates and len(ranking) < cut:
        novelty_gains = [_novelty_gain(candidate, aspects, times_covered, alpha) for candidate in candidates]
        # NEAR, because gains are sums of floats added in different orders.
        threshold = max(novelty_gains) - NEAR
        document = candidates.pop(next(position for position, gain in enumerate(novelty_gains) if gain >= threshold))
        ranking.append(document)
        for aspect in aspects.supports[document]:
            times_covered[aspect] += 1
    return _alpha_dcg(ranking, aspects, alpha)


def a_recall(ranking: Sequence[str], aspects: QueryAspects, cut: int) -> float:
    """Return A-Recall (equation 6): the total weight of the aspects that the first `cut` documents cover."""
    covered = {aspect for document in ranking[:cut] for aspect in aspects.supports.get(document, ())}
    return sum(aspects.weights[aspect] for aspect in covered)


Measure = Callable[[Sequence[str], QueryAspects, int], float]
MEASURES: dict[str, Measure] = {"alpha-nDCG": alpha_ndcg, "A-Recall": a_recall}


def _novelty_gain(document: str, aspects: QueryAspects, times_covered: Sequence[int], alpha: float) -> float:
    """Return the gain of equation 3: each aspect's weight, less for every earlier document."""
    return sum(
        aspects.weights[aspect] * (1 - alpha) ** times_covered[aspect] for aspect in aspects.supports.get(document, ())
    )


def _alpha_dcg(ranking: Sequence[str], aspects: QueryAspects, alpha: float) -> float:
    """Return the sum of equation 4; a document that is repeated gains nothing."""
    times_covered = [0] * len(aspects.weights)
    earlier_documents: set[str] = set()
    total = 0.0
    for rank, document in enumerate(ranking, 1):
        if document in earlier_documents:  # A repeated document takes up its rank and adds nothing.
            continue
        earlier_documents.add(document)
        total += _novelty_gain(document, aspects, times_covered, alpha) / log2(rank + 1)
        for aspect in aspects.supports.get(document, ()):
            times_covered[aspect] += 1
    return total
