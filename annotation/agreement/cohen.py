"""Cohen's kappa, plain and weighted, and percent agreement for many pairs of assessors at once. Pure numpy."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.resampling import CELLS, MISSING, Floats, Grades


class Cohen(NamedTuple):
    """Values for resamples x assessor pairs, NaN where undefined. `n`: items that both graded."""

    n: Floats
    kappa: Floats
    linear: Floats
    quadratic: Floats
    percent: Floats


def cohen(weights: Floats, rows: Grades, pairs: Sequence[tuple[int, int]]) -> Cohen:
    """Cohen's family for each row of `weights` (resamples x patterns) and each pair of rows of grades.

    Distances of the weighted kinds are those of the grades themselves: 0 and 3 are three apart though nobody gave 1.
    """
    width = max(int(rows.max(initial=0)) + 1, 2)
    hot = (rows[:, None, :] == np.arange(width)[None, :, None]).astype(weights.dtype)
    features = 1 + 2 * (width - 1) + (1 if width == 2 else 3)
    block = max(1, CELLS // (features * max(rows.shape[1], 1)))
    parts = [_block(weights, rows, hot, np.array(pairs[at : at + block])) for at in range(0, len(pairs), block)]
    return Cohen(*(np.concatenate(values, axis=1) for values in zip(*parts, strict=True)))


def _block(weights: Floats, rows: Grades, hot: Floats, pairs: NDArray[np.intp]) -> Cohen:
    """Sums over items first, then the formulas: kappa = 1 - observed / expected disagreement, in each weighting."""
    left, right = pairs[:, 0], pairs[:, 1]
    width, size = hot.shape[1], len(pairs)
    there = (rows != MISSING).astype(weights.dtype)
    both = there[left] * there[right]
    apart = np.abs(rows[left] - rows[right]).astype(weights.dtype) * both
    # With two grades all weightings are one.
    distances = [np.minimum(apart, 1), apart, apart**2] if width > 2 else [apart]
    mine = [hot[left, grade] * there[right] for grade in range(1, width)]
    theirs = [hot[right, grade] * there[left] for grade in range(1, width)]
    sums = weights @ np.concatenate([both, *distances, *mine, *theirs]).T
    n, *rest = (sums[:, place : place + size] for place in range(0, sums.shape[1], size))
    observed, margins = rest[: len(distances)], rest[len(distances) :]
    expected = _expected(n, margins[: width - 1], margins[width - 1 :], len(distances))
    with np.errstate(divide="ignore", invalid="ignore"):
        kappas = [np.where(e > 0, 1 - o / e, np.nan) for o, e in zip(observed, expected, strict=True)]
        percent = np.where(n > 0, 1 - observed[0] / n, np.nan)
    plain, linear, quadratic = kappas if len(kappas) == 3 else kappas * 3
    return Cohen(n, plain, linear, quadratic, percent)


def _expected(n: Floats, mine: list[Floats], theirs: list[Floats], kinds: int) -> list[Floats]:
    """Disagreement by chance under each weighting. Margins come for grades from 1; the rest is grade 0."""
    a = [n - sum(mine), *mine]
    b = [n - sum(theirs), *theirs]
    totals = [np.zeros_like(n) for _ in range(kinds)]
    for i, j in ((i, j) for i in range(len(a)) for j in range(len(b)) if i != j):
        joint = a[i] * b[j]
        for kind, total in enumerate(totals):
            total += joint * float(abs(i - j) ** kind)
    with np.errstate(divide="ignore", invalid="ignore"):
        return [np.where(n > 0, total / n, 0) for total in totals]
