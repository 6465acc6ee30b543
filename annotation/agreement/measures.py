"""Kappa, alpha and their relatives over a matrix of grades, with bootstrap intervals over items. Pure numpy.

A matrix of grades is assessors x items; grades are integers from 0, MISSING (-1) where there is
none. Every measure is a function of sums over items, so a resample is one row of weights times
features of the items.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.cohen import Sparse, cohen_kappas, find_overlaps
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

# Assessors up to whom all stand beside all. Of more, only those who graded a pair in common.
MANY = 40
FAMILY = ("kappa", "kappa_linear", "kappa_quadratic", "percent")
SPARSE = 16  # A product of whole rows does so many times the work of sparse counts in the same time.

Number = float | np.floating | Floats  # One number; a Floats here has no axis.

# Weights of the patterns (resamples x patterns) to values (resamples x whatever is measured).
Measure = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Statistic:
    """A measured value over `n` items, with its 95% interval; None with the `reason`."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Pairwise:
    """Agreement of two assessors, by their rows in the matrix. Against the majority of the others, `a` equals `b`."""

    a: int
    b: int
    n: int
    kappa: Statistic
    kappa_linear: Statistic
    kappa_quadratic: Statistic
    percent: Statistic


class Couples(Sequence[Pairwise]):
    """Many Pairwise, held as columns: half a million take some dozen megabytes and no objects."""

    def __init__(self, places: NDArray[np.int64], n: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """`places`: couples x (a, b); `values`: couples x FAMILY x (value, low, high), NaN where there is none."""
        self.places, self.n, self.values = places, n, values

    def __len__(self) -> int:
        return len(self.n)

    def __getitem__(self, at: int) -> Pairwise:  # type: ignore[override]  # nobody takes a part of them
        (a, b), n = self.places[at].tolist(), int(self.n[at])
        return Pairwise(
            a, b, n, *(build_statistic(v, low, high, n, NO_ITEM) for v, low, high in self.values[at].tolist())
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def dump(self) -> dict[str, str]:
        """Return the couples as JSON takes them: bytes, since a million numbers as text take seconds to read."""
        kept = {"places": self.places.astype("<i4"), "n": self.n.astype("<i4"), "values": self.values.astype("<f4")}
        return {name: b64encode(column.tobytes()).decode() for name, column in kept.items()}

    @classmethod
    def load(cls, found: dict[str, str]) -> "Couples":
        """Build the couples from what `dump` gave."""
        places, n, values = (
            np.frombuffer(b64decode(found[name]), kind)
            for name, kind in (("places", "<i4"), ("n", "<i4"), ("values", "<f4"))
        )
        return cls(
            places.astype(np.int64).reshape(-1, 2), n.astype(np.int64), values.astype(float).reshape(-1, len(FAMILY), 3)
        )


@dataclass(frozen=True, slots=True)
class AgreementMeasures:
    """All measures of a matrix. `items`: those that at least one assessor graded."""

    items: int
    pairwise: Couples
    # Couples of assessors without a common item that `pairwise` leaves out; 0 up to MANY assessors.
    apart: int
    fleiss: Statistic
    fleiss_votes: int  # Grades on each of the items of Fleiss' kappa; 0 where there is no such item.
    alpha_nominal: Statistic
    alpha_ordinal: Statistic
    alpha_interval: Statistic
    majority: Couples


def compute_measures(grades: NDArray[np.integer], *, bootstrap: int = 0, seed: int = 0) -> AgreementMeasures:
    """Compute every measure of grades (assessors x items), with intervals from `bootstrap` resamples (0: none)."""
    found = group_patterns(grades)
    assessors = len(found.grades)
    draws = Draws(found.counts, bootstrap, seed)
    given, counts = count_double(found)
    drawn = Draws(counts, bootstrap, seed)
    kappa, votes = _fleiss_statistic(given, drawn, assessors)
    double = int(counts.sum())
    alphas = estimate_intervals(krippendorff_alphas(given), drawn)
    none = ONE_ASSESSOR if assessors < 2 else NO_DOUBLE
    nominal, ordinal, by_distance = (build_statistic(value, low, high, double, none) for value, low, high in alphas)
    pairwise, majority = _two_by_two(found, draws)
    return AgreementMeasures(
        items=int(found.counts.sum()),
        pairwise=pairwise,
        apart=assessors * (assessors - 1) // 2 - len(pairwise),
        fleiss=kappa,
        fleiss_votes=votes,
        alpha_nominal=nominal,
        alpha_ordinal=ordinal,
        alpha_interval=by_distance,
        majority=majority,
    )


def fleiss_kappa(grades: NDArray[np.integer], *, bootstrap: int = 0, seed: int = 0) -> tuple[Statistic, int]:
    """Fleiss' kappa alone, and how many grades each of its items has."""
    given, counts = count_double(group_patterns(grades))
    return _fleiss_statistic(given, Draws(counts, bootstrap, seed), len(grades))


def count_grades(found: Patterns) -> NDArray[np.int64]:
    """Count how many gave each grade: grades x patterns."""
    return np.stack([(found.grades == grade).sum(axis=0) for grade in range(int(found.grades.max(initial=0)) + 1)])


def count_double(found: Patterns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count how many gave each grade, of patterns with two and more, and each one's items."""
    return merge_counts(count_grades(found), found.counts)


def majority_of_others(found: Patterns) -> Grades:
    """Find for each grade what most others gave that item; MISSING for a tie, or nobody else."""
    given = count_grades(found)
    result = np.full_like(found.grades, MISSING)
    for place, mine in enumerate(found.grades):
        at = np.flatnonzero(mine != MISSING)
        # Without the assessor's own grade, or everybody would partly agree with themselves.
        others = given[:, at]
        others[mine[at], np.arange(len(at))] -= 1
        most = others.max(axis=0)
        alone = ((others == most).sum(axis=0) == 1) & (most > 0)
        result[place, at] = np.where(alone, others.argmax(axis=0), MISSING)
    return result


def _two_by_two(found: Patterns, draws: Draws) -> tuple[Couples, Couples]:
    """Cohen's family of each couple of assessors, and of each with the majority of the others."""
    assessors = len(found.grades)
    rows = np.vstack([found.grades, majority_of_others(found)])
    met = find_overlaps(found.grades)
    every = np.stack(np.triu_indices(assessors, 1), axis=1)
    left, right, item = met
    couples = np.unique(left.astype(np.int64) * assessors + right)
    # Beyond MANY only couples that met: of 2,000 assessors 2 million couples are mostly empty.
    between = every if assessors <= MANY else np.stack(np.divmod(couples, assessors), axis=1)
    few = len(item) * SPARSE < len(between) * rows.shape[1]
    pairwise = _measure_couples(rows, between, draws, Sparse(rows, between, met) if few else None)
    against = np.stack([np.arange(assessors), np.arange(assessors) + assessors], axis=1)
    # An assessor meets the majority of the others on every item that both have a grade for.
    mine, item = np.nonzero((rows[:assessors] != MISSING) & (rows[assessors:] != MISSING))
    majority = Sparse(rows, against, (mine, mine + assessors, item)) if few else None
    own = _measure_couples(rows, against, draws, majority)
    own.places[:, 1] = own.places[:, 0]
    return pairwise, own


def _measure_couples(rows: Grades, pairs: NDArray[np.int64], draws: Draws, sparse: Sparse | None = None) -> Couples:
    """Compute values in double precision and the bounds of their intervals, in chunks."""
    values = np.full((len(pairs), len(FAMILY), 3), np.nan)
    n = np.zeros(len(pairs), dtype=np.int64)
    # Fewer couples at a time for many resamples; the sparse way holds a table of grades for each.
    block = max(1, CELLS // (32 * max(draws.number, 1)) // (1 if sparse is None else sparse.width**2 // 4))
    # With two grades the three kappas are one, and so are their intervals.
    told, back = ((1, 4), [0, 0, 0, 1]) if rows.max(initial=0) <= 1 else ((1, 2, 3, 4), [0, 1, 2, 3])
    for start in range(0, len(pairs), block):
        some = slice(start, min(start + block, len(pairs)))

        def of(weights: Floats, columns: Sequence[int], some: slice = some) -> Floats:
            """Resamples x couples x some columns of (n, FAMILY)."""
            found = cohen_kappas(weights, rows, pairs[some].tolist()) if sparse is None else sparse.cohen(weights, some)
            return np.stack([found[column] for column in columns], axis=2)

        # The value in double precision, from the unweighted counts; resamples in single precision.
        once = of(draws.counts[None].astype(np.float64), range(5))[0]
        n[some], values[some, :, 0] = np.round(once[:, 0]).astype(np.int64), once[:, 1:]
        if draws.number and draws.counts.size:
            low, high = percentile_interval(np.concatenate([of(weights, told) for weights in draws]))
            values[some, :, 1], values[some, :, 2] = low[:, back], high[:, back]
    return Couples(pairs.copy(), n, values)


def estimate_intervals(part: Measure, draws: Draws) -> list[tuple[Floats, Floats, Floats]]:
    """Estimate value, low and high of each thing that `part` measures; NaN where undefined."""
    value = np.atleast_1d(part(draws.counts[None].astype(np.float64))[0])
    low = high = np.full_like(value, np.nan)
    if draws.number and draws.counts.size:
        samples = np.concatenate([part(weights) for weights in draws])
        low, high = percentile_interval(samples.reshape(len(samples), -1))
    return list(zip(value, low, high, strict=True))


def _fleiss_statistic(given: NDArray[np.int64], draws: Draws, assessors: int) -> tuple[Statistic, int]:
    """The kappa of items with as many grades as most have, and that number."""
    items = np.bincount(given.sum(axis=0), weights=draws.counts, minlength=2)
    items[:2] = 0  # an item with fewer than two grades says nothing of agreement
    most = len(items) - 1 - int(items[::-1].argmax())
    votes = most if items[most] else 0
    ((value, low, high),) = estimate_intervals(fleiss_measure(given, votes), draws)
    none = ONE_ASSESSOR if assessors < 2 else NO_DOUBLE
    return build_statistic(value, low, high, int(items[votes]), none), votes


def fleiss_measure(given: NDArray[np.int64], votes: int) -> Measure:
    """Fleiss' kappa over the items that `votes` assessors graded, any of them (Psychological Bulletin 76, 1971)."""
    if votes < 2:
        return lambda weights: np.full(len(weights), np.nan)
    counts = given * (given.sum(axis=0) == votes)
    # Ordered couples of equal grades on an item, over all ordered couples (P_i of the paper).
    equal = ((counts**2).sum(axis=0) - counts.sum(axis=0)) / (votes * (votes - 1))
    features = np.vstack([equal, counts]).astype(np.float64)

    def values(weights: Floats) -> Floats:
        sums = (weights @ features.T.astype(weights.dtype)).astype(np.float64)
        grades = sums[:, 1:].sum(axis=1)
        chance = (_safe_ratio(sums[:, 1:], grades[:, None]) ** 2).sum(axis=1)
        return _safe_ratio(_safe_ratio(sums[:, 0], grades / votes) - chance, 1 - chance)

    return values


def krippendorff_alphas(given: NDArray[np.int64]) -> Measure:
    """Krippendorff's alpha over items with two grades and more: nominal, ordinal, interval."""
    grades = np.flatnonzero(given.any(axis=1))
    counts = given[grades].astype(np.float64)
    counts *= counts.sum(axis=0) >= 2
    others = np.maximum(counts.sum(axis=0) - 1, 1)
    low, high = np.triu_indices(len(grades), 1)
    # The coincidence matrix: each couple of unequal grades of an item counts 1 / (m - 1).
    features = np.vstack([counts, *(counts[c] * counts[k] / others for c, k in zip(low, high, strict=True))])

    def values(weights: Floats) -> Floats:
        sums = (weights @ features.T.astype(weights.dtype)).astype(np.float64)
        margins, coincidences = sums[:, : len(grades)], sums[:, len(grades) :]
        # The ordinal distance of two grades is the distance of their middle ranks.
        ranks = margins.cumsum(axis=1) - margins / 2
        spans = (1.0, (ranks[:, high] - ranks[:, low]) ** 2, (grades[high] - grades[low]) ** 2.0)
        chance = margins[:, low] * margins[:, high]
        # n - 1, since alpha draws a couple without putting the first value back.
        total = margins.sum(axis=1) - 1
        return np.stack(
            [1 - _safe_ratio(total * (coincidences * span).sum(axis=1), (chance * span).sum(axis=1)) for span in spans],
            axis=1,
        )

    return values


def _safe_ratio(above: Floats, below: Floats) -> Floats:
    """Divide; NaN where the denominator is zero, or only its rounding is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 1e-12, above / below, np.nan)


def build_statistic(value: Number, low: Number, high: Number, n: int, none: str) -> Statistic:
    """Build a Statistic of numbers; NaN becomes null. `none`: the reason without any item."""
    if not np.isfinite(value):
        return Statistic(None, None, None, n, ONE_GRADE if n else none)
    bounded = np.isfinite(low) and np.isfinite(high)
    return Statistic(float(value), float(low) if bounded else None, float(high) if bounded else None, n, None)
