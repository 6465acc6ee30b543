"""The power law of a learning curve, its confidence band, and the expected gain of the next labels (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST_POINTS = 3  # The law has three parameters.
NEXT = 500  # The expected gain is that of the next 500 labels.
RESAMPLES = 300
LEVEL = 0.05
GRID = 24  # The fitted curve and its band are drawn at these many label counts, and at the points.
# Bounds of a - b n^-c, with n in units of the smallest point: the asymptote, the distance to it, the exponent.
LOWEST, HIGHEST = (0.0, 0.0, 0.01), (1.0, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A value and its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CurveFit:
    """The fitted law a - b n^-c; `line`: pairs of (labels, estimate); `next`: the gain of the next NEXT labels."""

    a: float
    b: float
    c: float
    line: tuple[tuple[int, MeanEstimate], ...]
    next: MeanEstimate


@lru_cache(maxsize=64)
def estimate_means(values: tuple[tuple[float, ...], ...]) -> tuple[MeanEstimate, ...]:
    """Return each point's mean over queries with its interval; `values` has the shape (points, queries)."""
    table = np.array(values)
    return tuple(_estimates(table.mean(axis=1), _resample(table)))


@lru_cache(maxsize=64)
def fit_curve(labels: tuple[int, ...], values: tuple[tuple[float, ...], ...]) -> CurveFit | None:
    """Fit a - b n^-c to the means of the points by bounded least squares; None for fewer than LEAST_POINTS points.

    Bands are pointwise percentiles over bootstrap samples of the queries: each sample is the same at all points, and
    the law is fitted to its means. They say how far other queries would move the curve, not whether the law is true
    beyond the last point.
    """
    if len(labels) < LEAST_POINTS:
        return None
    counts, table = np.array(labels, dtype=np.float64), np.array(values)
    # In units of the smallest point, so that b and the bounds do not depend on the scale of the labels.
    unit = counts[0]
    parameters = fit_law(counts / unit, table.mean(axis=1))
    # The samples' fits start from the exponent of the first fit: one start instead of three, 300 times.
    samples = [fit_law(counts / unit, means, starts=(parameters[2],)) for means in _resample(table)]
    grid = np.unique([*counts, *np.linspace(counts[0], counts[-1] + NEXT, GRID).round()])
    line = _estimates(law(grid / unit, *parameters), np.array([law(grid / unit, *sample) for sample in samples]))
    # The gain is the difference of both ends of the same fitted curve, so its interval is narrower than either end's.
    ends = np.array([counts[-1], counts[-1] + NEXT]) / unit
    differences = [np.diff(law(ends, *fitted)) for fitted in (parameters, *samples)]
    (gain,) = _estimates(differences[0], np.array(differences[1:]))
    a, b, c = parameters
    # Back from units to labels: b (n / unit)^-c is b unit^c n^-c.
    return CurveFit(a, b * unit**c, c, tuple(zip(map(int, grid), line, strict=True)), gain)


def law(counts: Floats, a: float, b: float, c: float) -> Floats:
    """Return a - b n^-c."""
    return np.asarray(a - b * counts**-c)


def fit_law(counts: Floats, means: Floats, starts: Sequence[float] = (0.1, 0.5, 1.5)) -> tuple[float, float, float]:
    """Return a, b and c of bounded least squares: the best of several starts, since the loss is flat in parts of c."""
    from scipy.optimize import least_squares

    best = min(
        (
            least_squares(
                lambda abc: law(counts, *abc) - means,
                (min(float(means.max()) + 0.05, 1.0), 0.2, start),
                jac=lambda abc: np.stack(
                    [np.ones_like(counts), -(counts ** -abc[2]), abc[1] * np.log(counts) * counts ** -abc[2]], axis=1
                ),
                bounds=(LOWEST, HIGHEST),
                method="dogbox",  # Suited to few bounded parameters: half the time of the default.
                xtol=1e-12,
                ftol=1e-12,
                gtol=1e-12,
            )
            for start in starts
        ),
        key=lambda solution: float(solution.cost),
    )
    a, b, c = (float(value) for value in best.x)
    return a, b, c


def _resample(table: Floats) -> Floats:
    """Return the means of bootstrap samples of queries, the same at all points; shape (RESAMPLES, points)."""
    drawn_queries = np.random.default_rng(0).integers(table.shape[1], size=(RESAMPLES, table.shape[1]))
    return np.asarray(table[:, drawn_queries].mean(axis=2).T)


def _estimates(values: Floats, samples: Floats) -> Sequence[MeanEstimate]:
    low, high = np.quantile(samples, [LEVEL / 2, 1 - LEVEL / 2], axis=0)
    return [MeanEstimate(*map(float, bounds)) for bounds in zip(values, low, high, strict=True)]
