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

Supports = Mapping[str, frozenset[int]]  # Document to the places of the aspects that it supports.


@dataclass(frozen=True, slots=True)
class Sought:
    """The aspects of a query: their weights, and which documents support them."""

    weights: Sequence[float]
    supports: Supports

    @classmethod
    def of(cls, aspects: Sequence[tuple[int, Iterable[str]]]) -> "Sought":
        """Build from importances and documents; importances become weights that add up to 1."""
        supports: dict[str, set[int]] = {}
        for place, (_importance, documents) in enumerate(aspects):
            for document in documents:
                supports.setdefault(document, set()).add(place)
        frozen = {document: frozenset(places) for document, places in supports.items()}
        return cls(importance_weights([importance for importance, _documents in aspects]), frozen)

    def one(self) -> "Sought":
        """Return the same with each document under the heaviest of its aspects alone."""
        heaviest = {
            # The heaviest aspect, of equal ones the first: the `-one` form counts each document once.
            document: frozenset([min(places, key=lambda place: (-self.weights[place], place))])
            for document, places in self.supports.items()
        }
        return Sought(self.weights, heaviest)


def is_aspect_measure(name: str) -> bool:
    """Return whether a name of --measures is a measure of aspects."""
    return bool(_NAME.fullmatch(name))


def evaluate_aspects(rows: Sequence[AspectRow], run: Run, names: Sequence[str]) -> MeasureResult:
    """Evaluate every named measure and its `-one` form on each query of the file."""
    wanted: dict[str, tuple[Measure, int, bool]] = {}
    for name in names:
        parts = _NAME.fullmatch(name)
        if parts is None:
            raise BadInput(f"{name!r} is no measure of aspects: alpha-nDCG@k and A-Recall@k are")
        base, one, cut = parts.groups()
        for form in (ONE,) if one else ("", ONE):
            wanted[f"{base}{form}@{cut}"] = MEASURES[base], int(cut), bool(form)
    queries = {
        query: Sought.of([(row.importance, row.documents) for row in aspects])
        for query, aspects in by_query(rows).items()
    }
    # Every value would be 0, and read as the ranking's fault.
    if not any(one.supports for one in queries.values()):
        raise BadInput("No aspect of the file has a document: there is nothing to measure")
    per_query: dict[str, dict[str, float]] = {name: {} for name in wanted}
    for query, whole in queries.items():
        ranking, single = rank_documents(run.get(query, {})), whole.one()
        for name, (measure, depth, is_single) in wanted.items():
            per_query[name][query] = measure(ranking, single if is_single else whole, depth)
    means = {name: float(np.mean(list(values.values()))) for name, values in per_query.items()}
    return MeasureResult(len(queries), sorted(query for query in queries if not run.get(query)), means, per_query)


def alpha_ndcg(
    ranking: Sequence[str], aspects: Sought, cut: int, *, alpha: float = ALPHA, best: float | None = None
) -> float:
    """Return alpha-nDCG (equations 3 to 5); 0 without supporting documents. `best`: the `ideal`, where it is known."""
    best = ideal_alpha_dcg(aspects, cut, alpha) if best is None else best
    return _alpha_dcg(ranking[:cut], aspects, alpha) / best if best else 0.0


def ideal_alpha_dcg(aspects: Sought, cut: int, alpha: float = ALPHA) -> float:
    """Return the denominator of equation 5, found greedily: at each rank the largest gain.

    Of equals the last by id, as ties are broken everywhere.
    """
    # From the last id on, so that `next` below takes the last of equal gains.
    left, seen = sorted(aspects.supports, reverse=True), [0] * len(aspects.weights)
    ranking: list[str] = []
    while left and len(ranking) < cut:
        gains = [_novelty_gain(document, aspects, seen, alpha) for document in left]
        # NEAR, since gains are sums of floats in another order.
        most = max(gains) - NEAR
        best = left.pop(next(place for place, gain in enumerate(gains) if gain >= most))
        ranking.append(best)
        for place in aspects.supports[best]:
            seen[place] += 1
    return _alpha_dcg(ranking, aspects, alpha)


def a_recall(ranking: Sequence[str], aspects: Sought, cut: int) -> float:
    """Return A-Recall (equation 6): the weight of aspects that the first `cut` documents cover."""
    covered = {place for document in ranking[:cut] for place in aspects.supports.get(document, ())}
    return sum(aspects.weights[place] for place in covered)


Measure = Callable[[Sequence[str], Sought, int], float]
MEASURES: dict[str, Measure] = {"alpha-nDCG": alpha_ndcg, "A-Recall": a_recall}


def _novelty_gain(document: str, aspects: Sought, seen: Sequence[int], alpha: float) -> float:
    """Return the gain of equation 3: each aspect's weight, less for every earlier document."""
    return sum(aspects.weights[place] * (1 - alpha) ** seen[place] for place in aspects.supports.get(document, ()))


def _alpha_dcg(ranking: Sequence[str], aspects: Sought, alpha: float) -> float:
    """Return the sum of equation 4; a document that was there before gains nothing."""
    seen = [0] * len(aspects.weights)
    gone: set[str] = set()
    total = 0.0
    for rank, document in enumerate(ranking, 1):
        if document in gone:  # it keeps its rank, and says nothing new
            continue
        gone.add(document)
        total += _novelty_gain(document, aspects, seen, alpha) / log2(rank + 1)
        for place in aspects.supports.get(document, ()):
            seen[place] += 1
    return total
