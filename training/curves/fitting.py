"""The law of a learning curve, its bands, and what the next labels would buy (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST_POINTS = 3  # The law has as many parameters.
NEXT = 500  # Labels that the estimate is about.
RESAMPLES = 300
LEVEL = 0.05
GRID = 24  # Places at which the fitted curve and its band are drawn, beside the points.
# Of a - b n^-c with n in units of the smallest point: the most that can be reached, the distance to it, the exponent.
LOWEST, HIGHEST = (0.0, 0.0, 0.01), (1.0, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CurveFit:
    """The law a - b n^-c as fitted; `line`: (labels, estimate); `next`: gain of the next NEXT."""

    a: float
    b: float
    c: float
    line: tuple[tuple[int, Estimate], ...]
    next: Estimate


@lru_cache(maxsize=64)
def estimate_means(values: tuple[tuple[float, ...], ...]) -> tuple[Estimate, ...]:
    """Return each point's mean over queries, with intervals; values: (points, queries)."""
    table = np.array(values)
    return tuple(_estimates(table.mean(axis=1), _resample(table)))


@lru_cache(maxsize=64)
def fit_curve(labels: tuple[int, ...], values: tuple[tuple[float, ...], ...]) -> CurveFit | None:
    """Fit a - b n^-c to the means of the points by bounded least squares; None for fewer than LEAST_POINTS points.

    Bands are pointwise percentiles over bootstrap samples of the queries: one sample of queries is
    taken at all points, and the law is fitted to its means anew. They say how far other queries
    would move the curve, not whether the law holds beyond the last point.
    """
    if len(labels) < LEAST_POINTS:
        return None
    counts, table = np.array(labels, dtype=np.float64), np.array(values)
    # In units of the smallest point, so that b and bounds do not depend on labels.
    unit = counts[0]
    found = fit_law(counts / unit, table.mean(axis=1))
    # Resamples start from the exponent found: one start instead of three, 300 times.
    again = [fit_law(counts / unit, means, starts=(found[2],)) for means in _resample(table)]
    grid = np.unique([*counts, *np.linspace(counts[0], counts[-1] + NEXT, GRID).round()])
    line = _estimates(law(grid / unit, *found), np.array([law(grid / unit, *one) for one in again]))
    # The gain is the difference at both ends of one fitted curve, so its interval is narrower than that of either end.
    ends = np.array([counts[-1], counts[-1] + NEXT]) / unit
    gains = [np.diff(law(ends, *one)) for one in (found, *again)]
    (gain,) = _estimates(gains[0], np.array(gains[1:]))
    a, b, c = found
    # Back to single labels: b n^-c in units is b unit^c n^-c.
    return CurveFit(a, b * unit**c, c, tuple(zip(map(int, grid), line, strict=True)), gain)


def law(counts: Floats, a: float, b: float, c: float) -> Floats:
    """Return a - b n^-c."""
    return np.asarray(a - b * counts**-c)


def fit_law(counts: Floats, means: Floats, starts: Sequence[float] = (0.1, 0.5, 1.5)) -> tuple[float, float, float]:
    """Return a, b and c of least squares within the bounds: the best from several starts, as c has flat stretches."""
    from scipy.optimize import least_squares

    best = min(
        (
            least_squares(
                lambda at: law(counts, *at) - means,
                (min(float(means.max()) + 0.05, 1.0), 0.2, start),
                jac=lambda at: np.stack(
                    [np.ones_like(counts), -(counts ** -at[2]), at[1] * np.log(counts) * counts ** -at[2]], axis=1
                ),
                bounds=(LOWEST, HIGHEST),
                method="dogbox",  # for few parameters within bounds: half the time of the default
                xtol=1e-12,
                ftol=1e-12,
                gtol=1e-12,
            )
            for start in starts
        ),
        key=lambda found: float(found.cost),
    )
    a, b, c = (float(one) for one in best.x)
    return a, b, c


def _resample(table: Floats) -> Floats:
    """Return (RESAMPLES, points): means over drawn queries, the same at all points."""
    places = np.random.default_rng(0).integers(table.shape[1], size=(RESAMPLES, table.shape[1]))
    return np.asarray(table[:, places].mean(axis=2).T)


def _estimates(values: Floats, samples: Floats) -> Sequence[Estimate]:
    low, high = np.quantile(samples, [LEVEL / 2, 1 - LEVEL / 2], axis=0)
    return [Estimate(*map(float, one)) for one in zip(values, low, high, strict=True)]
