"""Kappa, alpha and percent agreement over a matrix of grades, with bootstrap intervals over items. Pure numpy.

A matrix of grades is assessors x items; grades are integers from 0, or MISSING (-1). Every measure is
a function of sums over items, so a resample is a row of weights times features of the items.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.cohen import Sparse, cohen_kappas
from annotation.agreement.resampling import (
    CELLS,
    MISSING,
    Draws,
    Floats,
    Grades,
    Patterns,
    group_patterns,
    merge_counts,
    percentile_interval,
)
from charts.translation import gettext_noop

NO_ITEM = gettext_noop("they graded no pair in common")
ONE_GRADE = gettext_noop("all grades are the same, so agreement beyond chance is undefined")
ONE_ASSESSOR = gettext_noop("fewer than two assessors")
NO_DOUBLE = gettext_noop("no pair has two grades")

# Up to so many assessors all couples are measured; of more, only couples with a common pair.
MANY = 40
FAMILY = ("kappa", "kappa_linear", "kappa_quadratic", "percent")  # The measures of a couple.
TOO_FEW = 30  # A figure of fewer values is shown with its interval, or said to be of too few.
SPARSE = 16  # A product of whole rows is so many times faster than sparse counts for the same number of items.

Number = float | np.floating | Floats  # A single number; Floats without an axis.

# From weights of the patterns (resamples x patterns) to values (resamples x measures).
Measure = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Statistic:
    """A value over `n` items with its 95% interval; None for the `reason`."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Pairwise:
    """Agreement of two assessors, as rows of the matrix; `a` equals `b` for the majority of the others."""

    a: int
    b: int
    n: int
    kappa: Statistic
    kappa_linear: Statistic
    kappa_quadratic: Statistic
    percent: Statistic


class Couples(Sequence[Pairwise]):
    """A sequence of Pairwise stored as columns, so that half a million take some dozen megabytes."""

    def __init__(self, places: NDArray[np.int64], n: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """`places`: couples x (a, b); `values`: couples x FAMILY x (value, low, high), NaN where undefined."""
        self.places, self.n, self.values = places, n, values

    def __len__(self) -> int:
        return len(self.n)

    def __getitem__(self, index: int) -> Pairwise:  # type: ignore[override]  # slices are not needed
        (a, b), n = self.places[index].tolist(), int(self.n[index])
        return Pairwise(
            a,
            b,
            n,
            *(build_statistic(value, low, high, n, NO_ITEM) for value, low, high in self.values[index].tolist()),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def dump(self) -> dict[str, str]:
        """Return the couples for JSON, as base64, because a million numbers as text take seconds to read."""
        columns = {"places": self.places.astype("<i4"), "n": self.n.astype("<i4"), "values": self.values.astype("<f4")}
        return {name: b64encode(column.tobytes()).decode() for name, column in columns.items()}

    @classmethod
    def load(cls, columns: dict[str, str]) -> "Couples":
        """Build the couples from the result of `dump`."""
        places, n, values = (
            np.frombuffer(b64decode(columns[name]), kind)
            for name, kind in (("places", "<i4"), ("n", "<i4"), ("values", "<f4"))
        )
        return cls(
            places.astype(np.int64).reshape(-1, 2), n.astype(np.int64), values.astype(float).reshape(-1, len(FAMILY), 3)
        )


@dataclass(frozen=True, slots=True)
class AgreementMeasures:
    """All measures of a matrix. `items`: the number of items that at least one assessor graded."""

    items: int
    pairwise: Couples
    # The number of couples without a common item, which `pairwise` leaves out; 0 up to MANY assessors.
    apart: int
    fleiss: Statistic
    fleiss_votes: int  # The number of grades on each item of Fleiss' kappa; 0 where there is no such item.
    alpha_nominal: Statistic
    alpha_ordinal: Statistic
    alpha_interval: Statistic
    majority: Couples


def compute_measures(grades: NDArray[np.integer], *, bootstrap: int = 0, seed: int = 0) -> AgreementMeasures:
    """Compute every measure of grades (assessors x items), with intervals from `bootstrap` resamples (0: none).

    1. Fleiss' kappa and Krippendorff's alphas, over the items with at least two grades.
    2. Cohen's kappas and percent agreement of each couple of assessors.
    3. The same of each assessor with the majority of the others.
    """
    patterns = group_patterns(grades)
    assessors = len(patterns.grades)
    draws = Draws(patterns.counts, bootstrap, seed)
    grade_counts, counts = count_double(patterns)
    double_draws = Draws(counts, bootstrap, seed)
    kappa, votes = _fleiss_statistic(grade_counts, double_draws, assessors)
    double = int(counts.sum())
    alphas = estimate_intervals(krippendorff_alphas(grade_counts), double_draws)
    reason = ONE_ASSESSOR if assessors < 2 else NO_DOUBLE
    nominal, ordinal, interval = (build_statistic(value, low, high, double, reason) for value, low, high in alphas)
    rows = np.vstack([patterns.grades, majority_of_others(patterns)])
    # The items that two assessors graded; the left one is always in the smaller row.
    graded, row = (indices.astype(np.int32) for indices in np.nonzero((patterns.grades != MISSING).T))
    parts = [(row[:0], row[:0], graded[:0])]
    # The grades are sorted by item, so two of them `step` positions apart may be on the same item.
    most_grades = int(np.bincount(graded, minlength=1).max(initial=0))
    for step in range(1, most_grades):
        same = graded[step:] == graded[:-step]
        parts.append((row[:-step][same], row[step:][same], graded[:-step][same]))
    left, right, items = (np.concatenate(column) for column in zip(*parts, strict=True))
    all_couples = np.stack(np.triu_indices(assessors, 1), axis=1)
    with_overlap = np.unique(left.astype(np.int64) * assessors + right)
    # Of many assessors most couples have no common item.
    couples = all_couples if assessors <= MANY else np.stack(np.divmod(with_overlap, assessors), axis=1)
    is_sparse = len(items) * SPARSE < len(couples) * rows.shape[1]
    overlaps = Sparse(rows, couples, (left, right, items)) if is_sparse else None
    pairwise = _measure_couples(rows, couples, draws, overlaps)
    with_majority = np.stack([np.arange(assessors), np.arange(assessors) + assessors], axis=1)
    assessor, item = np.nonzero((rows[:assessors] != MISSING) & (rows[assessors:] != MISSING))
    sparse = Sparse(rows, with_majority, (assessor, assessor + assessors, item)) if is_sparse else None
    majority = _measure_couples(rows, with_majority, draws, sparse)
    majority.places[:, 1] = majority.places[:, 0]
    return AgreementMeasures(
        items=int(patterns.counts.sum()),
        pairwise=pairwise,
        apart=assessors * (assessors - 1) // 2 - len(pairwise),
        fleiss=kappa,
        fleiss_votes=votes,
        alpha_nominal=nominal,
        alpha_ordinal=ordinal,
        alpha_interval=interval,
        majority=majority,
    )


def fleiss_kappa(grades: NDArray[np.integer], *, bootstrap: int = 0, seed: int = 0) -> tuple[Statistic, int]:
    """Return Fleiss' kappa, and the number of grades on each of its items."""
    grade_counts, counts = count_double(group_patterns(grades))
    return _fleiss_statistic(grade_counts, Draws(counts, bootstrap, seed), len(grades))


def count_grades(patterns: Patterns) -> NDArray[np.int64]:
    """Count the assessors who gave each grade: grades x patterns."""
    return np.stack(
        [(patterns.grades == grade).sum(axis=0) for grade in range(int(patterns.grades.max(initial=0)) + 1)]
    )


def count_double(patterns: Patterns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the assessors who gave each grade, over patterns with at least two grades; also return their items."""
    return merge_counts(count_grades(patterns), patterns.counts)


def majority_of_others(patterns: Patterns) -> Grades:
    """Return for each grade the majority of the other assessors' grades; MISSING for a tie or without others."""
    grade_counts = count_grades(patterns)
    result = np.full_like(patterns.grades, MISSING)
    for row, grades in enumerate(patterns.grades):
        graded = np.flatnonzero(grades != MISSING)
        # Without the assessor's own grade, or assessors would partly agree with themselves.
        others = grade_counts[:, graded]
        others[grades[graded], np.arange(len(graded))] -= 1
        most = others.max(axis=0)
        has_majority = ((others == most).sum(axis=0) == 1) & (most > 0)
        result[row, graded] = np.where(has_majority, others.argmax(axis=0), MISSING)
    return result


def _measure_couples(rows: Grades, pairs: NDArray[np.int64], draws: Draws, sparse: Sparse | None = None) -> Couples:
    """Measure couples of rows in chunks: values in double precision, resamples in single precision."""
    values = np.full((len(pairs), len(FAMILY), 3), np.nan)
    n = np.zeros(len(pairs), dtype=np.int64)
    # The more resamples, the fewer couples at a time; sparse counts need a table of grades for each couple.
    block = max(1, CELLS // (32 * max(draws.number, 1)) // (1 if sparse is None else sparse.width**2 // 4))
    # With two grades the three kappas are the same, and so are their intervals.
    resampled, columns_of_family = ((1, 4), [0, 0, 0, 1]) if rows.max(initial=0) <= 1 else ((1, 2, 3, 4), [0, 1, 2, 3])
    for start in range(0, len(pairs), block):
        chunk = slice(start, min(start + block, len(pairs)))

        def measure(weights: Floats, columns: Sequence[int], chunk: slice = chunk) -> Floats:
            """Return resamples x couples x these columns of (n, FAMILY)."""
            cohen = (
                cohen_kappas(weights, rows, pairs[chunk].tolist()) if sparse is None else sparse.cohen(weights, chunk)
            )
            return np.stack([cohen[column] for column in columns], axis=2)

        estimates = measure(draws.counts[None].astype(np.float64), range(5))[0]
        n[chunk], values[chunk, :, 0] = np.round(estimates[:, 0]).astype(np.int64), estimates[:, 1:]
        if draws.number and draws.counts.size:
            low, high = percentile_interval(np.concatenate([measure(weights, resampled) for weights in draws]))
            values[chunk, :, 1], values[chunk, :, 2] = low[:, columns_of_family], high[:, columns_of_family]
    return Couples(pairs.copy(), n, values)


def estimate_intervals(measure: Measure, draws: Draws) -> list[tuple[Floats, Floats, Floats]]:
    """Return value, low and high of each value of a measure; NaN where undefined."""
    value = np.atleast_1d(measure(draws.counts[None].astype(np.float64))[0])
    low = high = np.full_like(value, np.nan)
    if draws.number and draws.counts.size:
        samples = np.concatenate([measure(weights) for weights in draws])
        low, high = percentile_interval(samples.reshape(len(samples), -1))
    return list(zip(value, low, high, strict=True))


def _fleiss_statistic(grade_counts: NDArray[np.int64], draws: Draws, assessors: int) -> tuple[Statistic, int]:
    """Return Fleiss' kappa over items with the most frequent number of grades, and that number."""
    items = np.bincount(grade_counts.sum(axis=0), weights=draws.counts, minlength=2)
    items[:2] = 0  # Items with fewer than two grades have no agreement.
    # The larger one of equally frequent numbers.
    frequent = len(items) - 1 - int(items[::-1].argmax())
    votes = frequent if items[frequent] else 0
    ((value, low, high),) = estimate_intervals(fleiss_measure(grade_counts, votes), draws)
    reason = ONE_ASSESSOR if assessors < 2 else NO_DOUBLE
    return build_statistic(value, low, high, int(items[votes]), reason), votes


def fleiss_measure(grade_counts: NDArray[np.int64], votes: int) -> Measure:
    """Return Fleiss' kappa over items with `votes` grades by any assessors (Psychological Bulletin 76, 1971)."""
    if votes < 2:
        return lambda weights: np.full(len(weights), np.nan)
    counts = grade_counts * (grade_counts.sum(axis=0) == votes)
    # The share of equal ordered couples of grades on an item (P_i of the paper).
    equal = ((counts**2).sum(axis=0) - counts.sum(axis=0)) / (votes * (votes - 1))
    features = np.vstack([equal, counts]).astype(np.float64)

    def values(weights: Floats) -> Floats:
        sums = (weights @ features.T.astype(weights.dtype)).astype(np.float64)
        grades = sums[:, 1:].sum(axis=1)
        chance = (_safe_ratio(sums[:, 1:], grades[:, None]) ** 2).sum(axis=1)
        return _safe_ratio(_safe_ratio(sums[:, 0], grades / votes) - chance, 1 - chance)

    return values


def krippendorff_alphas(grade_counts: NDArray[np.int64]) -> Measure:
    """Return Krippendorff's nominal, ordinal and interval alpha over items with at least two grades."""
    grades = np.flatnonzero(grade_counts.any(axis=1))
    counts = grade_counts[grades].astype(np.float64)
    counts *= counts.sum(axis=0) >= 2
    others = np.maximum(counts.sum(axis=0) - 1, 1)
    low, high = np.triu_indices(len(grades), 1)
    # The coincidence matrix: each couple of unequal grades on an item with m grades counts 1 / (m - 1).
    features = np.vstack([counts, *(counts[c] * counts[k] / others for c, k in zip(low, high, strict=True))])

    def values(weights: Floats) -> Floats:
        sums = (weights @ features.T.astype(weights.dtype)).astype(np.float64)
        margins, coincidences = sums[:, : len(grades)], sums[:, len(grades) :]
        # The ordinal distance of two grades is the distance of their mean ranks.
        ranks = margins.cumsum(axis=1) - margins / 2
        spans = (1.0, (ranks[:, high] - ranks[:, low]) ** 2, (grades[high] - grades[low]) ** 2.0)
        chance = margins[:, low] * margins[:, high]
        # n - 1, because alpha draws a couple without replacement.
        total = margins.sum(axis=1) - 1
        return np.stack(
            [1 - _safe_ratio(total * (coincidences * span).sum(axis=1), (chance * span).sum(axis=1)) for span in spans],
            axis=1,
        )

    return values


def _safe_ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; NaN where the denominator is zero except for rounding errors."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 1e-12, numerator / denominator, np.nan)


def build_statistic(value: Number, low: Number, high: Number, n: int, reason: str) -> Statistic:
    """Build a Statistic; NaN becomes None. `reason`: why the value is undefined where n is 0."""
    if not np.isfinite(value):
        return Statistic(None, None, None, n, ONE_GRADE if n else reason)
    has_bounds = np.isfinite(low) and np.isfinite(high)
    return Statistic(float(value), float(low) if has_bounds else None, float(high) if has_bounds else None, n, None)
