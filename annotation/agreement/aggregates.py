"""Dawid-Skene as a second aggregate beside the majority: where the two differ, and what it thinks of each assessor."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from django.utils.translation import gettext_noop
from numpy.typing import NDArray

from annotation.agreement.dawid_skene import STARTS, Floats, Solution, dawid_skene, sparse_counts, votes_of
from annotation.agreement.grade_matrix import GradeMatrix
from annotation.agreement.report import AgreementReport
from annotation.agreement.resampling import MISSING, group_patterns, pattern_places

LARGE = 50_000  # Patterns x assessors from which fewer starts are made.
TOO_FEW = gettext_noop("needs at least three assessors")
NO_OVERLAP = gettext_noop("no two of them graded the same pair")
ONE_CLASS = gettext_noop("all grades are the same")


@dataclass(frozen=True, slots=True)
class Second:
    """The second aggregate of a report; `solution` None: there is none, and `reason` says why."""

    solution: Solution | None
    reason: str
    names: tuple[str, ...]
    items: int
    pairs: NDArray[np.int64]  # Ids of the pairs that have a grade. What follows is in their order.
    labels: NDArray[np.int64]
    majority: NDArray[np.int64]  # MISSING where several grades were given equally often.
    probability: Floats
    differs: NDArray[np.bool_]  # Both have a label, and not the same.
    places: NDArray[np.intp]  # Of each pair its row in the solution's posterior.

    @property
    def ties(self) -> int:
        """Pairs without a majority, on which only the second aggregate decides."""
        return int((self.majority == MISSING).sum())

    @property
    def differing(self) -> int:
        """Pairs on which the two differ."""
        return int(self.differs.sum())

    def posterior_of(self, pairs: NDArray[np.int64], grades: NDArray[np.int64]) -> Floats:
        """Return the probability of each pair's grade; NaN for pairs and grades that the solution does not know."""
        chances = np.full(len(pairs), np.nan)
        if self.solution is None or not len(self.pairs):
            return chances
        classes = np.array(self.solution.classes, dtype=np.int64)
        row = np.minimum(np.searchsorted(self.pairs, pairs), len(self.pairs) - 1)
        column = np.minimum(np.searchsorted(classes, grades), len(classes) - 1)
        known = (self.pairs[row] == pairs) & (classes[column] == grades)
        chances[known] = self.solution.posterior[self.places[row[known]], column[known]]
        return chances

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


def fit_dawid_skene(report: AgreementReport) -> Second:
    """Fit Dawid-Skene to the report's grades."""
    return fit_matrix(report.found, tuple(one.name for one in report.assessors))


def fit_matrix(matrix: GradeMatrix, names: tuple[str, ...]) -> Second:
    """Fit Dawid-Skene to the grades of assessors with these names."""
    # An item without a grade would be labelled by the priors alone.
    there = (matrix.grades != MISSING).any(axis=0)
    grades, pairs = matrix.grades[:, there], matrix.pairs[there]
    is_graded = grades != MISSING
    reason = "" if len(np.unique(grades[is_graded])) > 1 else ONE_CLASS
    reason = reason if (is_graded.sum(axis=0) >= 2).any() else NO_OVERLAP
    reason = reason if is_graded.any(axis=1).sum() >= 3 else TOO_FEW
    if reason:
        none = np.empty(0, dtype=np.int64)
        nowhere, nothing = none.astype(np.intp), none.astype(np.bool_)
        return Second(None, reason, names, len(pairs), none, none, none, np.empty(0), nothing, nowhere)
    # Equal columns of grades are one item with a weight, so a million pairs are few.
    found = group_patterns(grades)
    classes, counts = sparse_counts(found.grades)
    starts = STARTS if found.grades.size < LARGE else 2
    solution = dawid_skene(counts, classes, weights=found.counts.astype(np.float64), starts=starts)
    assert solution is not None
    place = pattern_places(grades)
    votes = votes_of(counts, len(classes))
    alone = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1
    majority = np.where(alone, np.array(classes, dtype=np.int64)[votes.argmax(axis=1)], MISSING)[place]
    labels = solution.labels[place]
    probability = solution.posterior.max(axis=1)[place]
    differs = (majority != MISSING) & (labels != majority)
    return Second(solution, "", names, len(pairs), pairs, labels, majority, probability, differs, place)


def differing_pairs(report: AgreementReport, found: Second, limit: int = 200) -> list[list[Any]]:
    """Return the pairs on which the aggregates differ, the surest first: pair, majority,
    Dawid-Skene's label, its probability, and (place of an assessor, grade) for each grade given.
    """
    at = np.flatnonzero(found.differs)
    at = at[np.lexsort((found.pairs[at], -found.probability[at]))][:limit]
    labels = np.stack([found.pairs[at], found.majority[at], found.labels[at]], axis=1).tolist()
    # A report's pairs are in the order of their ids, so each is found by halving.
    given = report.found.grades[:, np.searchsorted(report.found.pairs, found.pairs[at])].T
    return [
        [*ids, probability, [(place, int(g)) for place, g in enumerate(grades) if g != MISSING]]
        for ids, probability, grades in zip(labels, found.probability[at].tolist(), given, strict=True)
    ]


def dawid_skene_document(found: Second) -> dict[str, Any]:
    """Return the value of `dawid_skene` in the JSON of the command `agreement`."""
    solution = found.solution
    if solution is None:
        return {"reason": found.reason, "items": found.items, "log_likelihood": None, "collapsed": None}
    return {
        "reason": solution.collapsed or None,
        "items": found.items,
        "classes": list(solution.classes),
        "priors": [float(prior) for prior in solution.priors],
        "log_likelihood": solution.log_likelihood,
        "highest_log_likelihood": solution.highest,
        **{name: getattr(solution, name) for name in ("iterations", "converged", "starts")},
        "collapsed": bool(solution.collapsed),
        "assessors": [
            {"name": name, "accuracy": share, "confusion": solution.confusion[place].tolist()}
            for place, (name, share, _) in enumerate(found.accuracies)
        ],
        "differs_from_majority": found.differing,
        "ties": found.ties,
    }
