"""Strength of the signals against each label, and the ranking of the labels by it. Pure numpy.

Each signal is read as the probability that the label is wrong, given that signal alone. Signals are
assumed independent, so the odds given all signals are the prior odds times, for each signal, its
odds over the prior odds. Judges' votes and Dawid-Skene rest on the same votes and count as one
signal: the mean of their log-odds. A missing signal changes nothing. The result ranks
labels; it is not a calibrated probability.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Northcutt, Athalye and Mueller (2021) found 3.3% of wrong labels in ten test sets.
PRIOR = 0.05
SUREST = 0.01  # Signals are clipped to this probability, so that none decides alone.


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals against the labels, one value per label; NaN where a signal is absent."""

    against: NDArray[np.int64]  # Number of judges' votes for the other label.
    votes: NDArray[np.int64]  # Number of all judges' votes.
    dawid_skene: Floats  # The probability of the other label.
    others: NDArray[np.int64]  # Number of near-duplicate pairs with the other label.
    group: NDArray[np.int64]  # Number of near-duplicate pairs, this one included; 0: none.
    model: Floats  # The probability of the other label, by a model that did not see the query.

    def chances(self) -> Floats:
        """Return labels x signals (votes, Dawid-Skene, near-duplicates, model): the probabilities of an error."""
        # One more vote, which errs as often as labels do, keeps a single vote from being certain.
        votes = np.where(self.votes > 0, (self.against + PRIOR) / (self.votes + 1), np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            near = np.where(self.group > 1, self.others / self.group, np.nan)
        return np.stack([votes, self.dawid_skene, near, self.model], axis=1)


def combine_chances(chances: Floats) -> Floats:
    """Return the log-odds of an error for each label. `chances`: as Signals.chances returns them."""
    log_odds = _log_odds(np.clip(chances, SUREST, 1 - SUREST)) - _log_odds(np.array(PRIOR))
    assessors, present = log_odds[:, :2], ~np.isnan(log_odds[:, :2])
    mean = np.where(present, assessors, 0.0).sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    others: Floats = np.nan_to_num(log_odds[:, 2:]).sum(axis=1)
    total: Floats = mean + others + float(_log_odds(np.array(PRIOR)))
    return total


def rank_labels(scores: Floats) -> NDArray[np.intp]:
    """Return the positions of the labels, the most suspicious first; equal ones keep their order."""
    return np.argsort(-scores, kind="stable")


def _log_odds(chances: Floats) -> Floats:
    log_odds: Floats = np.log(chances) - np.log1p(-chances)
    return log_odds
