"""LARA: a judge's P(yes) and P(no), calibrated on people's labels as they come in (DREAM 3.2). Pure.

The loop: fit a logistic regression of all labels so far, hand the pairs whose calibrated
probability is nearest to one half to people, and so on until their share is spent. The rest takes
the calibrated label. The fit sees labels of those pairs only that people were handed: `run` gets no
others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

BATCHES = 100  # A batch is this part of all pairs, so that the model is fitted anew after every hundredth.

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Ask = Callable[[Places], NDArray[np.int64]]  # People's labels (0 or 1) of the pairs at these places.


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Result of a calibration.

    `asked`: places of pairs in the order in which people got them; `probability`: P(relevant) of
    each pair; `label`: people's where they were asked, else the calibrated one.
    """

    asked: Places
    probability: Floats
    label: NDArray[np.int64]

    @property
    def own(self) -> NDArray[np.bool_]:
        """Pairs that got the calibrated label."""
        mask = np.ones(len(self.label), dtype=np.bool_)
        mask[self.asked] = False
        return mask


def budget_of(pairs: int, share: float) -> int:
    """Pairs that people get: the share, rounded to the nearest, a half up."""
    return min(pairs, int(pairs * share + 0.5))


def batch_of(pairs: int) -> int:
    """Pairs that people get before the next fit."""
    return max(1, ceil(pairs / BATCHES))


def run_shares(beliefs: Floats, ask: Ask, shares: Sequence[float]) -> list[Calibrated]:
    """LARA over pairs x (P(yes), P(no)) for several shares; `ask` is called once a batch."""
    pairs = len(beliefs)
    size = batch_of(pairs)
    asked, labels = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    probability = calibrate_beliefs(beliefs, asked, labels)
    found: dict[int, Calibrated] = {}
    # A smaller share is the beginning of a larger one. Only its last batch may be cut short: those
    # pairs are asked for once more within the larger share's whole batch.
    for budget in sorted({budget_of(pairs, share) for share in shares}):
        while len(asked) + size <= budget:
            asked, labels, probability = _ask_batch(beliefs, ask, asked, labels, probability, size)
        left = budget - len(asked)
        last = _ask_batch(beliefs, ask, asked, labels, probability, left) if left else (asked, labels, probability)
        places, given, believed = last
        label = (believed >= 0.5).astype(np.int64)
        label[places] = given
        found[budget] = Calibrated(places, believed, label)
    return [found[budget_of(pairs, share)] for share in shares]


def _ask_batch(
    beliefs: Floats, ask: Ask, asked: Places, labels: NDArray[np.int64], probability: Floats, size: int
) -> tuple[Places, NDArray[np.int64], Floats]:
    """After one more batch: pairs asked, their labels, and what is believed now."""
    chosen = most_uncertain(probability, asked, size)
    asked, labels = np.concatenate([asked, chosen]), np.concatenate([labels, ask(chosen)])
    return asked, labels, calibrate_beliefs(beliefs, asked, labels)


def calibrate_beliefs(beliefs: Floats, asked: Places, labels: NDArray[np.int64]) -> Floats:
    """P(relevant) of every pair by a logistic regression on P(yes) and P(no), fitted to the labels of `asked`.

    Until both labels were seen there is nothing to fit: then the judge's own P(yes) / (P(yes) + P(no)) stands.
    """
    # A logistic regression needs both classes.
    if len(np.unique(labels)) < 2:
        total = beliefs.sum(axis=1)
        own: Floats = np.divide(beliefs[:, 0], total, out=np.full(len(beliefs), 0.5), where=total > 0)
        return own
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(beliefs[asked], labels)
    found: Floats = model.predict_proba(beliefs)[:, 1]
    return found


def most_uncertain(probability: Floats, asked: Places, size: int) -> Places:
    """Places of the pairs nearest to one half that were not asked for yet; of equals the first."""
    distance = np.abs(probability - 0.5)
    distance[asked] = np.inf
    chosen: Places = np.argsort(distance, kind="stable")[:size]
    return chosen
