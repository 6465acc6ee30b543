"""Judges that err together: Dawid-Skene, for which assessors err independently, takes what they share for right.

Two judges err together where, among pairs of the same true grade, they are wrong on the same ones more often than by
chance (Cochran 1954; Mantel and Haenszel 1959, one-sided). Pure numpy.
"""

from itertools import combinations
from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.resampling import MISSING

Grades = NDArray[np.integer]
PAIRS = 20  # Least number of pairs with a known grade that two judges must share.
CHANCE = 0.01  # Probability that any two independent judges are named, over all couples (Bonferroni).


def majority_grades(grades: Grades) -> NDArray[np.int64]:
    """Return the most frequent grade of each pair (assessors x pairs); MISSING for none and for ties."""
    classes = np.unique(grades[grades != MISSING])
    if not len(classes):
        return np.full(grades.shape[1], MISSING, dtype=np.int64)
    votes = np.stack([(grades == grade).sum(axis=0) for grade in classes])
    is_clear = (votes == votes.max(axis=0)).sum(axis=0) == 1
    return np.where(is_clear & (votes.max(axis=0) > 0), classes[votes.argmax(axis=0)], MISSING).astype(np.int64)


def find_shared_errors(judges: Grades, gold: Grades) -> list[tuple[int, ...]]:
    """Return the groups of judges (rows) that err together; `gold`: the grade of each pair, or MISSING."""
    couples = list(combinations(range(len(judges)), 2))
    groups: list[set[int]] = []
    for couple in couples:
        if _chance_of_errors(judges[list(couple)], gold) < CHANCE / len(couples):
            joined = [group for group in groups if group.intersection(couple)]
            groups = [group for group in groups if group not in joined]
            groups.append(set(couple).union(*joined))
    return sorted(tuple(sorted(group)) for group in groups)


def _chance_of_errors(couple: Grades, gold: Grades) -> float:
    """Return the one-sided p of the errors that two independent judges would share."""
    is_shared = (couple != MISSING).all(axis=0) & (gold != MISSING)
    if is_shared.sum() < PAIRS:
        return 1.0
    excess = variance = 0.0
    # Within a grade: two judges that are both too lenient share errors without knowing of each other.
    for grade in np.unique(gold[is_shared]):
        first, second = couple[:, is_shared & (gold == grade)] != grade
        n, a, b = len(first), int(first.sum()), int(second.sum())
        if n > 1:
            excess += int((first & second).sum()) - a * b / n
            variance += a * b * (n - a) * (n - b) / (n * n * (n - 1))
    return 0.5 * erfc(excess / sqrt(2 * variance)) if variance else 1.0
