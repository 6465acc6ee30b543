"""Whether training helped, in words (pure). The page, the card and the command say the same sentence."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

LEVEL = 0.05
RESAMPLES = 100_000
LEAST_QUERIES = 5


@dataclass(frozen=True)
class Gain:
    """Tuned against base over the same queries: mean difference, two-sided p, the number of queries, and the verdict.

    `shown` is true only for a rise with p below the level.
    """

    measure: str
    base: float | None
    tuned: float | None
    difference: float | None
    p: float | None
    queries: int
    shown: bool
    words: str


def compare_models(
    base: Mapping[str, float],
    tuned: Mapping[str, float],
    *,
    measure: str = "nDCG@10",
    least: int = LEAST_QUERIES,
    seed: int = 0,
) -> Gain:
    """A paired randomisation test over the queries that both sides measured (exact up to 16 queries).

    With fewer than `least` queries no gain is claimed, whatever p is.
    """
    shared = sorted(base.keys() & tuned.keys())
    if not shared:
        return Gain(measure, None, None, None, None, 0, False, gain_verdict(measure, None, None, 0))
    differences = np.array([tuned[query] - base[query] for query in shared])
    p = randomisation_test(differences, seed=seed)
    mean = float(differences.mean())
    averages = [float(np.mean([side[query] for query in shared])) for side in (base, tuned)]
    shown = mean > 0 and p < LEVEL and len(shared) >= least
    words = gain_verdict(measure, mean, p, len(shared), least)
    return Gain(measure, averages[0], averages[1], mean, p, len(shared), shown, words)


def randomisation_test(differences: np.ndarray, *, seed: int = 0) -> float:
    """Two-sided p of the mean difference when each query's sign is a coin's throw; 1 when nothing differs."""
    differing = differences[np.abs(differences) > 1e-12]
    if not len(differing):
        return 1.0
    observed = abs(differing.sum()) - 1e-9
    if len(differing) <= 16:
        signs = 1 - 2 * ((np.arange(2 ** len(differing))[:, None] >> np.arange(len(differing))) & 1)
        return float(np.mean(np.abs(signs @ differing) >= observed))
    draw = np.random.default_rng(seed)
    extreme, left = 0, RESAMPLES
    while left:
        rows = min(left, max(1, 4_000_000 // len(differing)))
        signs = 1 - 2 * draw.integers(0, 2, size=(rows, len(differing)), dtype=np.int8)
        extreme += int(np.sum(np.abs(signs @ differing) >= observed))
        left -= rows
    return (extreme + 1) / (RESAMPLES + 1)


def gain_verdict(
    measure: str, difference: float | None, p: float | None, queries: int, least: int = LEAST_QUERIES
) -> str:
    """One sentence: a gain, a loss, or no gain shown; it never calls "not shown" a proof of nothing."""
    if difference is None or p is None:
        return f"no gain shown: {measure} is not measured on any query that both models answered"
    if queries < least:
        return f"no gain shown: {queries} queries are too few to test ({measure} {difference:+.3f})"
    at = f"{measure} {difference:+.3f} over {queries} queries, p {_format_p(p)}"
    if p >= LEVEL:
        return f"no gain shown: p = {p:.2g} ({measure} {difference:+.3f} over {queries} queries)"
    return f"gain: {at}" if difference > 0 else f"worse than its base: {at}"


def _format_p(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"= {p:.2g}"
