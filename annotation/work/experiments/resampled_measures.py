"""Measures of votes with 95% intervals by a bootstrap over items.

A resample draws as many items as there are, with repetition, and each item with all its votes. So a resample is a
weight for each item, the number of times that it was drawn, and a measure is computed from such weights. The module
computes and reads no database.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.measures import Statistic
from annotation.agreement.resampling import Floats, draw_resamples, percentile_interval
from annotation.work.experiments.votes import Vote

RESAMPLE_COUNT = 400  # With 20,000 votes, so many resamples take about a second.

Measure = Callable[[Floats], Floats]
"""From the weights of the items (resamples x items) to the value in each resample, NaN where it is undefined."""
MeasureBuilder = Callable[[Sequence[Vote], NDArray[np.intp]], Measure]
"""From votes, and for each vote the position of its item among the weights, to a measure of these votes."""


class MeasureTerm(NamedTuple):
    """A measure, and the number of items over which it is resampled."""

    measure: Measure
    item_count: int


def build_term(build_measure: MeasureBuilder, votes: Sequence[Vote]) -> MeasureTerm:
    """Return a measure of these votes as a term of `resample`."""
    items, item_positions = np.unique([vote.item_id for vote in votes], return_inverse=True)
    return MeasureTerm(build_measure(votes, item_positions), len(items))


def resample(term: MeasureTerm, undefined_reason: str, *, resample_count: int = RESAMPLE_COUNT) -> Statistic:
    """Return a measure with its interval.

    The measure is undefined, with `undefined_reason`, if there are no items or it has no value. There is no interval
    if there is a single item, or if too few resamples have a value.
    """
    return _resample_terms([term], undefined_reason, resample_count)


def resample_difference(
    term: MeasureTerm, subtracted: MeasureTerm, undefined_reason: str, *, resample_count: int = RESAMPLE_COUNT
) -> Statistic:
    """Return the measure of one term minus that of another one, with the interval of the difference.

    The items of both terms are resampled independently, and the statistic counts the items of both. Otherwise as
    `resample`: what is said there of the measure applies if it is true of one of the two.
    """
    return _resample_terms([term, subtracted], undefined_reason, resample_count)


def _resample_terms(terms: Sequence[MeasureTerm], undefined_reason: str, resample_count: int) -> Statistic:
    """Return the measure of the first term minus those of the others, with its interval."""
    item_count = sum(term.item_count for term in terms)
    undefined = Statistic(value=None, low=None, high=None, n=item_count, reason=undefined_reason)
    if not all(term.item_count for term in terms):
        return undefined
    # The value of a measure counts every item once.
    values = [float(term.measure(np.ones((1, term.item_count)))[0]) for term in terms]
    value = values[0] - sum(values[1:])
    if not np.isfinite(value):
        return undefined
    without_interval = Statistic(value=value, low=None, high=None, n=item_count, reason=None)
    if min(term.item_count for term in terms) < 2 or not resample_count:
        return without_interval
    # Each term has a seed of its own: with the same seed, both terms would draw the same positions and vary together.
    samples = []
    for seed, term in enumerate(terms):
        blocks = draw_resamples(np.ones(term.item_count, dtype=np.int64), resample_count, seed)
        samples.append(np.concatenate([term.measure(weights.astype(float)) for weights in blocks]))
    differences = samples[0] - sum(samples[1:])
    lows, highs = percentile_interval(differences[:, None])
    low = float(lows[0])
    high = float(highs[0])
    if not (np.isfinite(low) and np.isfinite(high)):
        return without_interval
    return Statistic(value=value, low=low, high=high, n=item_count, reason=None)


def accuracy_measure(votes: Sequence[Vote], item_positions: NDArray[np.intp]) -> Measure:
    """Build the measure of the share of right votes. All votes have a reference grade."""
    right_counts = np.bincount(item_positions, [vote.is_right for vote in votes])
    vote_counts = np.bincount(item_positions)
    return lambda weights: safe_ratio(weights @ right_counts, weights @ vote_counts)


def balanced_accuracy_measure(votes: Sequence[Vote], item_positions: NDArray[np.intp]) -> Measure:
    """Build the measure of the mean of both classes' recalls. All votes have a reference grade."""
    references = np.array([vote.reference for vote in votes], dtype=bool)
    relevant = np.array([vote.relevant for vote in votes], dtype=bool)
    recall_of_not_relevant = _recall_measure(~references, ~relevant, item_positions)
    recall_of_relevant = _recall_measure(references, relevant, item_positions)
    return lambda weights: np.mean([recall_of_not_relevant(weights), recall_of_relevant(weights)], axis=0)


def _recall_measure(
    is_of_class: NDArray[np.bool_], votes_for_class: NDArray[np.bool_], item_positions: NDArray[np.intp]
) -> Measure:
    """Build the measure of the recall of a class: the share of the votes on its items that are for this class."""
    vote_counts = np.bincount(item_positions, is_of_class)
    right_counts = np.bincount(item_positions, is_of_class & votes_for_class)
    return lambda weights: safe_ratio(weights @ right_counts, weights @ vote_counts)


def median_seconds_measure(votes: Sequence[Vote], item_positions: NDArray[np.intp]) -> Measure:
    """Build the measure of the median time of a vote in seconds. The time of all votes was measured."""
    # The median is used because a few long pauses would dominate the mean.
    return repeated_median_measure(np.array([vote.seconds for vote in votes], dtype=float), item_positions)


def repeated_median_measure(values: Floats, item_positions: NDArray[np.intp]) -> Measure:
    """Build the measure of the median of values, each of which is repeated as often as its item was drawn."""

    def compute_medians(weights: Floats) -> Floats:
        return np.array([np.median(np.repeat(values, row[item_positions].astype(int))) for row in weights])

    return compute_medians


def safe_ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide elementwise; the result is NaN where the denominator is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)
