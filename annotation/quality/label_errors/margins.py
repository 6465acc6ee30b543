"""Out-of-fold probabilities of the labels: a simple model's, for queries that it never saw. Pure."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FOLDS = 10
FEWEST = 10  # Fewest labels of either class in each training fold.


def score_out_of_fold(features: Floats, labels: NDArray[np.int64], groups: NDArray[np.int64]) -> Floats | None:
    """Return each pair's probability of the label 1, by a logistic regression that saw no pair of its group.

    `groups`: the group of each pair's query; queries that are near-duplicates share a group, which lies in
    one fold. Return None for too few labels.
    """
    # Imported here because scikit-learn takes seconds to load.
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scores = np.full(len(labels), np.nan)
    folds = min(FOLDS, len(np.unique(groups)))
    if folds < 2:
        return None
    for training_rows, test_rows in GroupKFold(folds).split(features, groups=groups):
        if np.bincount(labels[training_rows], minlength=2).min() < FEWEST:
            return None
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000))
        model.fit(features[training_rows], labels[training_rows])
        scores[test_rows] = model.predict_proba(features[test_rows])[:, 1]
    return scores
