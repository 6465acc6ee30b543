"""A simple model's probability of each label, out of fold: of queries that it never saw. Pure."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FOLDS = 10
FEWEST = 10  # Labels of either kind that every fold must leave to learn from.


def score_out_of_fold(features: Floats, labels: NDArray[np.int64], groups: NDArray[np.int64]) -> Floats | None:
    """Return each pair's probability of the label 1, by a logistic regression that saw no pair of its group.

    `groups`: a number for each query, the same for queries that are nearly the same: they stand in
    one fold. It is fitted once for each fold, and no label has a say in the scores of its own
    group. None for too few labels.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    found = np.full(len(labels), np.nan)
    folds = min(FOLDS, len(np.unique(groups)))
    if folds < 2:
        return None
    for known, asked in GroupKFold(folds).split(features, groups=groups):
        if np.bincount(labels[known], minlength=2).min() < FEWEST:
            return None
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000))
        found[asked] = model.fit(features[known], labels[known]).predict_proba(features[asked])[:, 1]
    return found
