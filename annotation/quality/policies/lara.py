"""LARA: a judge's P(yes) and P(no), calibrated on people's labels as they come in (DREAM 3.2). Pure.

The loop: fit a logistic regression to all labels of people so far, give people the pairs whose calibrated
probability is nearest to one half, and repeat until people have judged their share of the pairs. The
others get the calibrated label. The fit sees labels only of pairs that were given to people.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

BATCHES = 100  # A batch is a hundredth of all pairs; the model is fitted after each.

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
Ask = Callable[[Positions], NDArray[np.int64]]  # People's labels (0 or 1) of the pairs at these positions.


@dataclass(frozen=True, slots=True)
class CalibratedLabels:
    """Result of a calibration.

    `people_pairs`: positions of the pairs that people judged, in order; `probability`: P(relevant) of
    each pair; `label`: people's label if there is one, else the calibrated one.
    """

    people_pairs: Positions
    probability: Floats
    label: NDArray[np.int64]

    @property
    def own(self) -> NDArray[np.bool_]:
        """Mask of the pairs that got the calibrated label."""
        mask = np.ones(len(self.label), dtype=np.bool_)
        mask[self.people_pairs] = False
        return mask


def budget_of(pairs: int, share: float) -> int:
    """Return the number of pairs that people judge: the share, rounded to the nearest, a half up."""
    return min(pairs, int(pairs * share + 0.5))


def batch_of(pairs: int) -> int:
    """Return the number of pairs that people judge before the next fit."""
    return max(1, ceil(pairs / BATCHES))


def run_shares(beliefs: Floats, ask: Ask, shares: Sequence[float]) -> list[CalibratedLabels]:
    """Run LARA for several shares of pairs. `beliefs`: pairs x (P(yes), P(no)); `ask` is called once a batch."""
    pairs = len(beliefs)
    size = batch_of(pairs)
    people_pairs, labels = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    probability = calibrate_beliefs(beliefs, people_pairs, labels)
    calibrations: dict[int, CalibratedLabels] = {}
    # A run with a smaller share is the beginning of one with a larger share, but for its last batch,
    # which may be shorter: the larger share asks for those pairs again within a whole batch.
    for budget in sorted({budget_of(pairs, share) for share in shares}):
        while len(people_pairs) + size <= budget:
            people_pairs, labels, probability = _ask_batch(beliefs, ask, people_pairs, labels, probability, size)
        last_pairs, last_labels, last_probability = people_pairs, labels, probability
        if remainder := budget - len(people_pairs):
            last_pairs, last_labels, last_probability = _ask_batch(
                beliefs, ask, people_pairs, labels, probability, remainder
            )
        label = (last_probability >= 0.5).astype(np.int64)
        label[last_pairs] = last_labels
        calibrations[budget] = CalibratedLabels(last_pairs, last_probability, label)
    return [calibrations[budget_of(pairs, share)] for share in shares]


def _ask_batch(
    beliefs: Floats, ask: Ask, people_pairs: Positions, labels: NDArray[np.int64], probability: Floats, size: int
) -> tuple[Positions, NDArray[np.int64], Floats]:
    """Ask people for another batch. Return the pairs that they have judged, their labels, and the new P(relevant)."""
    batch = most_uncertain(probability, people_pairs, size)
    people_pairs, labels = np.concatenate([people_pairs, batch]), np.concatenate([labels, ask(batch)])
    return people_pairs, labels, calibrate_beliefs(beliefs, people_pairs, labels)


def calibrate_beliefs(beliefs: Floats, people_pairs: Positions, labels: NDArray[np.int64]) -> Floats:
    """Return P(relevant) of each pair by a logistic regression on P(yes) and P(no).

    It is fitted to the labels of `people_pairs`. Without labels of both classes it is P(yes) / (P(yes) + P(no)).
    """
    if len(np.unique(labels)) < 2:
        total = beliefs.sum(axis=1)
        own: Floats = np.divide(beliefs[:, 0], total, out=np.full(len(beliefs), 0.5), where=total > 0)
        return own
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(beliefs[people_pairs], labels)
    probability: Floats = model.predict_proba(beliefs)[:, 1]
    return probability


def most_uncertain(probability: Floats, people_pairs: Positions, size: int) -> Positions:
    """Return the positions of the pairs nearest to one half that people have not judged; of equals the first."""
    distance = np.abs(probability - 0.5)
    distance[people_pairs] = np.inf
    batch: Positions = np.argsort(distance, kind="stable")[:size]
    return batch
