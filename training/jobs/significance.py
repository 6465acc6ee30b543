"""The verdict on whether training helped (pure). The page, the card and the command say the same sentence."""

from collections.abc import Mapping
from typing import Any

import numpy as np

LEVEL = 0.05
RESAMPLES = 100_000  # More than the 2^16 sign patterns of 16 queries, which are all counted instead.
LEAST_QUERIES = 5
TOO_FEW = "queries are too few to test"


def compare_models(
    base: Mapping[str, float],
    tuned: Mapping[str, float],
    *,
    measure: str = "nDCG@10",
    least: int = LEAST_QUERIES,
) -> dict[str, Any]:
    """Compare over the queries that both sides measured: means, their difference, a two-sided p, and a verdict.

    `shown` is true only for a rise with p below the level; with fewer than `least` queries never, whatever p is.
    """
    shared = sorted(base.keys() & tuned.keys())
    figures: dict[str, float | None] = dict.fromkeys(("base", "tuned", "difference", "p"))
    shown = False
    if shared:
        before, after = (np.array([side[query] for query in shared]) for side in (base, tuned))
        difference, p = float((after - before).mean()), randomisation_test(after - before)
        figures = {"base": float(before.mean()), "tuned": float(after.mean()), "difference": difference, "p": p}
        shown = difference > 0 and p < LEVEL and len(shared) >= least
    words = gain_verdict(measure, figures["difference"], figures["p"], len(shared), least)
    return {"measure": measure, **figures, "queries": len(shared), "shown": shown, "words": words}


def randomisation_test(differences: np.ndarray, *, seed: int = 0) -> float:
    """Return the two-sided p of the mean difference under random signs, exact up to 16 queries that differ."""
    from scipy.stats import permutation_test

    # Queries without a difference keep their 0 under either sign, so only the others are permuted.
    differing = differences[np.abs(differences) > 1e-12]
    if len(differing) < 2:  # One sign turned is as far from 0 as the other.
        return 1.0
    found = permutation_test(
        (differing,),
        lambda signed, axis: np.abs(np.mean(signed, axis=axis)),
        alternative="greater",  # of the mean's size: SciPy's "two-sided" doubles the smaller tail instead
        permutation_type="samples",
        n_resamples=RESAMPLES,
        batch=max(1, 4_000_000 // len(differing)),  # Signs that are held at once.
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def gain_verdict(
    measure: str, difference: float | None, p: float | None, queries: int, least: int = LEAST_QUERIES
) -> str:
    """Return one sentence: a gain, a loss, or no gain shown, which is never called a proof of no effect."""
    if difference is None or p is None:
        return f"no gain shown: {measure} is not measured on any query that both models answered"
    if queries < least:
        return f"no gain shown: {queries} {TOO_FEW} ({measure} {difference:+.3f})"
    chance = "< 0.0001" if p < 0.0001 else f"= {p:.2g}"
    at = f"{measure} {difference:+.3f} over {queries} queries, p {chance}"
    if p >= LEVEL:
        return f"no gain shown: p = {p:.2g} ({measure} {difference:+.3f} over {queries} queries)"
    return f"gain: {at}" if difference > 0 else f"worse than its base: {at}"
