"""Calibration of margins as probabilities, and a threshold, fitted on the dev split (pure; Platt 1999)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.recipes.metrics import Floats, sigmoid

# With fewer positives or negatives, the fit would describe the sample.
LEAST_OF_EACH = 10


@dataclass(frozen=True)
class Calibration:
    """A calibration, probability = sigmoid(a * margin + b), and a threshold.

    `threshold` is a probability, `threshold_margin` the corresponding raw margin. If they were not fitted, they are
    sigmoid(margin) and 0.5, and `reason` says why.
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
    """Fit Platt's a and b, and the threshold of the best balanced accuracy, on the labelled rows."""
    labelled = [(margin, label) for margin, label in zip(margins, labels, strict=True) if label is not None]
    raw, relevant = np.array(labelled, dtype=np.float64).reshape(-1, 2).T
    positives = int(relevant.sum())
    negatives = len(relevant) - positives
    counts = {"positives": positives, "negatives": negatives}
    if min(positives, negatives) < LEAST_OF_EACH:
        sizes = f"{positives} relevant and {negatives} not"
        reason = f"the dev split is too small: {sizes}, {LEAST_OF_EACH} of each are needed"
        return Calibration(**counts, reason=reason)
    a, b = fit_platt(raw, relevant)
    # A slope below 0 would reverse the ranking; an infinite one comes from margins that are all equal or not finite.
    if a <= 0 or not np.isfinite(a + b):
        return Calibration(**counts, reason="on the dev split a higher margin does not mean more relevant")
    margin = best_margin(raw, relevant)
    return Calibration(a, b, float(sigmoid(np.float64(a * margin + b))), margin, **counts)  # type: ignore[arg-type]


def fit_platt(margins: Floats, labels: Floats) -> tuple[float, float]:
    """Return a and b that maximise the likelihood of Platt's smoothed targets."""
    from scipy.optimize import minimize

    positives = float(labels.sum())
    negatives = len(labels) - positives
    # Platt (1999), section 2.2: targets of 1 and 0 would make the slope infinite if the labels are separable.
    targets = np.where(labels == 1, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    # The fit is better conditioned on standardised margins; its result is scaled back.
    mean, scale = float(margins.mean()), float(margins.std()) or 1.0
    design = np.column_stack([(margins - mean) / scale, np.ones(len(margins))])

    def loss(weights: Floats) -> tuple[float, Floats]:
        value = design @ weights
        return float(np.sum(np.logaddexp(0.0, value) - targets * value)), design.T @ (sigmoid(value) - targets)

    start = [0.0, np.log((positives + 1) / (negatives + 1))]
    a, b = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return float(a) / scale, float(b) - float(a) / scale * mean


def best_margin(margins: Floats, labels: Floats) -> float:
    """Return the margin with the greatest balanced accuracy; of equal ones, the nearest to 0."""
    values = np.unique(margins)
    candidates = np.concatenate([[values[0] - 1.0], (values[1:] + values[:-1]) / 2, [values[-1] + 1.0]])
    # A larger table would take memory without a better threshold.
    if len(candidates) * len(margins) > 4_000_000:
        candidates = np.quantile(margins, np.linspace(0, 1, 1001))
    above = margins[None, :] > candidates[:, None]
    hits, false_alarms = above[:, labels == 1].mean(axis=1), above[:, labels == 0].mean(axis=1)
    # Balanced, since with one positive in fifty plain accuracy would call everything not relevant.
    balanced = np.round(hits - false_alarms, 12)
    best = candidates[balanced == balanced.max()]
    return float(best[np.argmin(np.abs(best))])
