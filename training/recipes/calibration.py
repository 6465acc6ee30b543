"""Calibration of margins, and a threshold, from the dev split (pure; Platt 1999)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.recipes.metrics import Floats, sigmoid

# Fewer positives or negatives than this, and the fit is about the sample.
LEAST_OF_EACH = 10


@dataclass(frozen=True)
class Calibration:
    """Calibration: probability = sigmoid(a * margin + b).

    `threshold` is a probability, `threshold_margin` the raw margin there. `reason` is empty when
    both were fitted, else why they were left at sigmoid(margin) and 0.5.
    """

    a: float = 1.0
    b: float = 0.0
    threshold: float = 0.5
    threshold_margin: float = 0.0
    positives: int = 0
    negatives: int = 0
    reason: str = ""

    def probability(self, margin: float) -> float:
        """Return the calibrated probability of "relevant"."""
        return float(sigmoid(np.float64(self.a * margin + self.b)))  # type: ignore[arg-type]


def fit_calibration(margins: Sequence[float], labels: Sequence[int | None]) -> Calibration:
    """Fit Platt's a and b, and the threshold of the best balanced accuracy, on the labelled rows of the dev split."""
    kept = [(margin, label) for margin, label in zip(margins, labels, strict=True) if label is not None]
    raw, truth = np.array(kept, dtype=np.float64).reshape(-1, 2).T
    positives = int(truth.sum())
    negatives = len(truth) - positives
    counts = {"positives": positives, "negatives": negatives}
    if min(positives, negatives) < LEAST_OF_EACH:
        found = f"{positives} relevant and {negatives} not"
        few = f"the dev split is too small: {found}, {LEAST_OF_EACH} of each are needed"
        return Calibration(**counts, reason=few)
    a, b = fit_platt(raw, truth)
    # A slope below 0 would turn the ranking round; infinite ones come of margins that are all alike or not finite.
    if a <= 0 or not np.isfinite(a + b):
        return Calibration(**counts, reason="on the dev split a higher margin does not mean more relevant")
    line = best_margin(raw, truth)
    return Calibration(a, b, float(sigmoid(np.float64(a * line + b))), line, **counts)  # type: ignore[arg-type]


def fit_platt(margins: Floats, truth: Floats) -> tuple[float, float]:
    """Return a and b that maximise the likelihood of Platt's smoothed targets."""
    from scipy.optimize import minimize

    positives = float(truth.sum())
    negatives = len(truth) - positives
    # Platt (1999), section 2.2: targets of 1 and 0 would send the slope to infinity where the labels are separable.
    targets = np.where(truth == 1, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    # The search is better conditioned on standardised margins; what it finds is put back on theirs.
    mean, scale = float(margins.mean()), float(margins.std()) or 1.0
    design = np.column_stack([(margins - mean) / scale, np.ones(len(margins))])

    def loss(weights: Floats) -> tuple[float, Floats]:
        value = design @ weights
        return float(np.sum(np.logaddexp(0.0, value) - targets * value)), design.T @ (sigmoid(value) - targets)

    start = [0.0, np.log((positives + 1) / (negatives + 1))]
    a, b = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return float(a) / scale, float(b) - float(a) / scale * mean


def best_margin(margins: Floats, truth: Floats) -> float:
    """Return the margin of the greatest balanced accuracy, of equal ones the nearest to 0."""
    values = np.unique(margins)
    candidates = np.concatenate([[values[0] - 1.0], (values[1:] + values[:-1]) / 2, [values[-1] + 1.0]])
    if len(candidates) * len(margins) > 4_000_000:  # A table of so many cells takes memory and shows no more.
        candidates = np.quantile(margins, np.linspace(0, 1, 1001))
    above = margins[None, :] > candidates[:, None]
    hits, false_alarms = above[:, truth == 1].mean(axis=1), above[:, truth == 0].mean(axis=1)
    # Balanced: with one positive in fifty plain accuracy would call everything not relevant.
    balanced = np.round(hits - false_alarms, 12)
    best = candidates[balanced == balanced.max()]
    return float(best[np.argmin(np.abs(best))])
