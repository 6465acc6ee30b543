"""Figures from the grades of answers: completeness, efficiency (AER), means, and the order of systems. Pure.

BRIGHT-Pro 4.2 and 4.3. A completeness of 4.5 is rounded up to 5, unless Python's rounding is chosen (ADR 0088).
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import exp, floor
from statistics import fmean

UP, EVEN = "up", "even"  # How halves are rounded; Python's `round` takes 4.5 to the even number, 4.
GAMMA = 0.05  # The paper's discount for each further search.


def weigh_coverage(importances: Mapping[str, int], scores: Mapping[str, float]) -> Fraction | None:
    """Return the mean of the aspects' scores (0, 0.5, 1) weighted by importance; None without aspects."""
    total = sum(importances.values())
    if not total:
        return None
    return sum((Fraction(importances[key]) * Fraction(scores[key]) for key in importances), Fraction()) / total


def rate_completeness(coverage: Fraction | float, halves: str = UP) -> int:
    """Return the completeness from 1 to 5: round(4 w + 1) for a coverage w from 0 to 1; `halves`: UP or EVEN."""
    # In fractions, since a float may be just below its half.
    exact = 4 * Fraction(coverage) + 1
    return round(exact) if halves == EVEN else floor(exact + Fraction(1, 2))


def efficiency_quality(quality: float, searches: int) -> float:
    """Return the AER of one answer: its overall quality, discounted for every search after the first."""
    # An agent that answers at once keeps its quality: no search counts as one (BRIGHT-Pro 4.3, ADR 0088).
    return quality * exp(-GAMMA * (max(1, searches) - 1))


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean; None if any value is missing or there are none."""
    present = [value for value in values if value is not None]
    return fmean(present) if present and len(present) == len(values) else None


def mean_over_agents(values: Sequence[float | None]) -> float | None:
    """Return the mean over two or more agents; None if any value is missing."""
    return mean_of(values) if len(values) > 1 else None


def order_by_mean(means: Mapping[str, float | None]) -> list[str]:
    """Return the names by their mean, the best first; those without a mean last, by name."""
    return sorted(means, key=lambda name: ((value := means[name]) is None, -(value or 0.0), name))
