"""Can attention checks be told from ordinary items by what a page shows? Pure; scikit-learn inside the function.

A classifier reads features of pages, learns on four fifths, scores the last fifth, five times. If its AUC is surely
above one half, something gives the checks away.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FOLDS = 5
FEWEST = 10
"""Of either kind; with fewer nothing can be said."""
Z95 = 1.959964


@dataclass(frozen=True, slots=True)
class Told:
    """Area under the ROC curve of the cross-validated scores, with its 95% interval (DeLong); 0.5: chance."""

    auc: float
    low: float
    high: float
    checks: int
    others: int

    @property
    def apart(self) -> bool:
        """The interval does not hold 0.5: they can be told apart."""
        return not self.low <= 0.5 <= self.high


def told_apart(features: Floats, is_check: NDArray[np.bool_], *, seed: int = 0) -> Told | None:
    """Features (pages x features) and which pages are checks. None where there are fewer than FEWEST of either."""
    checks = int(is_check.sum())
    others = len(is_check) - checks
    if min(checks, others) < FEWEST:
        return None
    scores = _scores(features, is_check, seed)
    low, value, high = auc_interval(scores[is_check], scores[~is_check])
    return Told(value, low, high, checks, others)


def _scores(features: Floats, is_check: NDArray[np.bool_], seed: int) -> Floats:
    """Out-of-fold scores, as ranks within their fold: scores of different folds have different scales."""
    from scipy.stats import rankdata
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import StratifiedKFold

    found = np.zeros(len(is_check))
    for learn, tell in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(features, is_check):
        model = RandomForestClassifier(
            n_estimators=100, min_samples_leaf=5, class_weight="balanced", random_state=seed, n_jobs=1
        )
        model.fit(features[learn], is_check[learn])
        found[tell] = rankdata(model.predict_proba(features[tell])[:, 1]) / len(tell)
    return found


def auc_interval(positive: Floats, negative: Floats) -> tuple[float, float, float]:
    """Low, AUC, high: DeLong's 95% interval.

    E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson: Comparing the areas under two or more correlated receiver
    operating characteristic curves. Biometrics 44 (1988).
    """
    above = (positive[:, None] > negative[None, :]) + 0.5 * (positive[:, None] == negative[None, :])
    value = float(above.mean())
    by_positive, by_negative = above.mean(axis=1), above.mean(axis=0)
    variance = by_positive.var(ddof=1) / len(positive) + by_negative.var(ddof=1) / len(negative)
    wide = Z95 * float(np.sqrt(variance))
    return max(0.0, value - wide), value, min(1.0, value + wide)
