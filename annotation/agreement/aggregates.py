"""Dawid-Skene as a second aggregate beside the majority: where the two differ, and each assessor's accuracy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from django.utils.translation import gettext_noop
from numpy.typing import NDArray

from annotation.agreement.dawid_skene import STARTS, Floats, Solution, dawid_skene, sparse_counts, votes_of
from annotation.agreement.grade_matrix import GradeMatrix
from annotation.agreement.report import AgreementReport
from annotation.agreement.resampling import MISSING, group_patterns, pattern_places

LARGE = 50_000  # From so many patterns x assessors on, EM has fewer starts.
TOO_FEW = gettext_noop("needs at least three assessors")
NO_OVERLAP = gettext_noop("no two of them graded the same pair")
ONE_CLASS = gettext_noop("all grades are the same")


@dataclass(frozen=True, slots=True)
class SecondAggregate:
    """The second aggregate of a report; `solution` is None where there is none, for the `reason`."""

    solution: Solution | None
    reason: str
    names: tuple[str, ...]
    items: int
    pairs: NDArray[np.int64]  # Ids of the pairs with a grade; the arrays below are in this order.
    labels: NDArray[np.int64]
    majority: NDArray[np.int64]  # MISSING where several grades are equally frequent.
    probability: Floats
    differs: NDArray[np.bool_]  # The pair has a majority and another label.
    places: NDArray[np.intp]  # Each pair's row in the solution's posterior.

    @property
    def ties(self) -> int:
        """Return the number of pairs without a majority."""
        return int((self.majority == MISSING).sum())

    @property
    def differing(self) -> int:
        """Return the number of pairs on which the two aggregates differ."""
        return int(self.differs.sum())

    def posterior_of(self, pairs: NDArray[np.int64], grades: NDArray[np.int64]) -> Floats:
        """Return the probability of each pair's grade; NaN for pairs and grades without one."""
        probabilities = np.full(len(pairs), np.nan)
        if self.solution is None or not len(self.pairs):
            return probabilities
        classes = np.array(self.solution.classes, dtype=np.int64)
        row = np.minimum(np.searchsorted(self.pairs, pairs), len(self.pairs) - 1)
        column = np.minimum(np.searchsorted(classes, grades), len(classes) - 1)
        is_known = (self.pairs[row] == pairs) & (classes[column] == grades)
        probabilities[is_known] = self.solution.posterior[self.places[row[is_known]], column[is_known]]
        return probabilities

    @property
    def accuracies(self) -> list[tuple[str, float, tuple[float, ...]]]:
        """Return each assessor's name, estimated share of right grades, and share of right grades in each class."""
        if self.solution is None:
            return []
        shares, rates = self.solution.accuracies
        return [
            (name, float(share), tuple(map(float, row)))
            for name, share, row in zip(self.names, shares, rates, strict=True)
        ]


def fit_dawid_skene(report: AgreementReport) -> SecondAggregate:
    """Fit Dawid-Skene to the report's grades."""
    return fit_matrix(report.found, tuple(assessor.name for assessor in report.assessors))


def fit_matrix(matrix: GradeMatrix, names: tuple[str, ...]) -> SecondAggregate:
    """Fit Dawid-Skene to the grades of assessors with these names."""
    # Without items that have no grade, whose labels would follow from the priors alone.
    has_grade = (matrix.grades != MISSING).any(axis=0)
    grades, pairs = matrix.grades[:, has_grade], matrix.pairs[has_grade]
    is_graded = grades != MISSING
    reason = "" if len(np.unique(grades[is_graded])) > 1 else ONE_CLASS
    reason = reason if (is_graded.sum(axis=0) >= 2).any() else NO_OVERLAP
    reason = reason if is_graded.any(axis=1).sum() >= 3 else TOO_FEW
    if reason:
        empty = np.empty(0, dtype=np.int64)
        return SecondAggregate(
            None,
            reason,
            names,
            len(pairs),
            empty,
            empty,
            empty,
            np.empty(0),
            empty.astype(np.bool_),
            empty.astype(np.intp),
        )
    # Equal columns of grades become one item with a weight, which makes a million pairs few.
    patterns = group_patterns(grades)
    classes, counts = sparse_counts(patterns.grades)
    starts = STARTS if patterns.grades.size < LARGE else 2
    solution = dawid_skene(counts, classes, weights=patterns.counts.astype(np.float64), starts=starts)
    assert solution is not None
    pattern_index = pattern_places(grades)
    votes = votes_of(counts, len(classes))
    has_majority = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1
    majority = np.where(has_majority, np.array(classes, dtype=np.int64)[votes.argmax(axis=1)], MISSING)[pattern_index]
    labels = solution.labels[pattern_index]
    probability = solution.posterior.max(axis=1)[pattern_index]
    differs = (majority != MISSING) & (labels != majority)
    return SecondAggregate(
        solution, "", names, len(pairs), pairs, labels, majority, probability, differs, pattern_index
    )


def dawid_skene_document(second: SecondAggregate) -> dict[str, Any]:
    """Return the value of `dawid_skene` in the JSON of the command agreement."""
    solution = second.solution
    if solution is None:
        return {"reason": second.reason, "items": second.items, "log_likelihood": None, "collapsed": None}
    return {
        "reason": solution.collapsed or None,
        "items": second.items,
        "classes": list(solution.classes),
        "priors": [float(prior) for prior in solution.priors],
        "log_likelihood": solution.log_likelihood,
        "highest_log_likelihood": solution.highest,
        **{name: getattr(solution, name) for name in ("iterations", "converged", "starts")},
        "collapsed": bool(solution.collapsed),
        "assessors": [
            {"name": name, "accuracy": share, "confusion": solution.confusion[number].tolist()}
            for number, (name, share, _) in enumerate(second.accuracies)
        ],
        "differs_from_majority": second.differing,
        "ties": second.ties,
    }
