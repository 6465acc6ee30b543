"""Strengths of documents from preferences between two of them, by the model of Bradley and Terry. Pure.

R. A. Bradley, M. E. Terry: Rank analysis of incomplete block designs. Biometrika 39 (1952): document i is preferred to
document j with probability 1 / (1 + exp(s_j - s_i)). A tie counts as half a win for each side.

A document that won or lost all its comparisons has no finite maximum of the likelihood, and with few comparisons per
query that is the usual case. So a normal prior of mean 0 is always there, as the regularisation of `choix`: it
subtracts alpha * s**2, which is a standard deviation of sqrt(1 / (2 * alpha)), about 3.2 in log-odds. It matters
where a document has few comparisons, and little where it has many.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ALPHA = 0.05
TOLERANCE = 1e-10  # Of the largest change of a strength in a step.
MOST_STEPS = 200

Win = tuple[int, int, float]  # The preferred document, the other one, and the weight: 1, or 0.5 for a side of a tie.


class Strength(NamedTuple):
    """The log-strength of a document, with the mean of those that it is connected with at 0, and its interval."""

    estimate: float
    low: float
    high: float


def fit(wins: Sequence[Win], level: float = 0.95, alpha: float = ALPHA) -> dict[int, Strength]:
    """Return the strength of each document that was compared.

    Strengths can be compared within a connected part of the comparisons only: each part has mean 0. The interval is
    normal, from the inverse of the observed information with the prior, by the delta method for the centred strengths.
    Curvature with the prior and not the sandwich, because it also covers the bias of shrinking (D. Nychka, JASA 83,
    1988), and because a query has too few assessors to cluster by them; so preferences count as independent of
    each other. Raises ValueError for a document against itself, and unless weights and `alpha` are above 0.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components
    from scipy.special import ndtri

    if not wins:
        return {}
    if alpha <= 0 or any(winner == loser or not weight > 0 for winner, loser, weight in wins):
        raise ValueError("Comparisons are between two documents, and their weights and alpha are above 0.")
    documents = np.unique([document for winner, loser, _weight in wins for document in (winner, loser)])
    winners, losers = (np.searchsorted(documents, [win[side] for win in wins]) for side in (0, 1))
    shape = (len(documents), len(documents))
    # counts[i, j]: how often i was preferred to j. Equal comparisons are added up.
    counts = csr_array((np.array([win[2] for win in wins], dtype=np.float64), (winners, losers)), shape=shape)
    width = float(ndtri((1 + level) / 2))
    strengths: dict[int, Strength] = {}
    parts, part_of = connected_components(counts, directed=False)
    for part in range(parts):
        members = np.flatnonzero(part_of == part)
        estimates, deviations = _fit_part(counts[members][:, members].toarray(), alpha)
        for document, estimate, margin in zip(documents[members], estimates, width * deviations, strict=True):
            strengths[int(document)] = Strength(float(estimate), float(estimate - margin), float(estimate + margin))
    return strengths


def _fit_part(counts: NDArray[np.float64], alpha: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the strengths and their standard deviations for wins by (winner, loser), by Newton's method."""
    number, compared = len(counts), counts + counts.T

    def objective(strengths: NDArray[np.float64]) -> float:
        losses = np.logaddexp(0.0, strengths[None, :] - strengths[:, None])
        return float((counts * losses).sum() + alpha * (strengths**2).sum())

    def information(strengths: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        probabilities = 1 / (1 + np.exp(np.clip(strengths[None, :] - strengths[:, None], -500, 500)))
        gradient = (compared * probabilities).sum(axis=1) - counts.sum(axis=1) + 2 * alpha * strengths
        weights = compared * probabilities * (1 - probabilities)
        return gradient, np.diag(weights.sum(axis=1) + 2 * alpha) - weights

    strengths = np.zeros(number)
    value = objective(strengths)
    for _ in range(MOST_STEPS):
        gradient, hessian = information(strengths)
        step, size = np.linalg.solve(hessian, gradient), 1.0
        # A full step may overshoot where one side won almost everything.
        while (following := objective(strengths - size * step)) > value + 1e-12 * abs(value) and size > 1e-6:
            size /= 2
        strengths, value = strengths - size * step, following
        if np.abs(size * step).max() < TOLERANCE:
            break
    # The prior's pull is to 0, so the mean is 0 already, up to rounding.
    centring = np.eye(number) - 1 / number
    covariance = centring @ np.linalg.inv(information(strengths)[1]) @ centring
    return strengths - strengths.mean(), np.sqrt(np.diag(covariance))
