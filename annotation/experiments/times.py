"""Seconds for a vote in each arm, and what the debate saves. Pure.

Medians, because a few long pauses would rule a mean; intervals by a bootstrap over items, which are drawn with all the
votes on them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from annotation.agreement.measures import Statistic
from annotation.agreement.resampling import Floats
from annotation.experiments.votes import MOMENTS, RESAMPLES, Measure, Vote, bootstrap_difference, over_items, votes_at
from charts.translation import gettext_noop

NO_TIME = gettext_noop("no time was measured")
NO_TWO_ARMS = gettext_noop("one of the two arms has no measured time")


@dataclass(frozen=True, slots=True)
class Times:
    """Median seconds by moment (`votes.MOMENTS`); `saved`: that with the debate hidden minus that with it shown."""

    by_moment: dict[str, Statistic]
    saved: Statistic


def vote_times(votes: Sequence[Vote], *, bootstrap: int = RESAMPLES) -> Times:
    """Of all votes with a measured time. The final vote of the reveal arm counts from the reveal on."""
    timed = [vote for vote in votes if vote.seconds is not None]
    found = {moment.key: votes_at(moment, timed) for moment in MOMENTS}
    medians = {key: over_items(median_seconds, mine, NO_TIME, bootstrap=bootstrap) for key, mine in found.items()}
    sides: list[tuple[Measure, int]] = []
    for key in ("hidden", "shown"):
        items = {item: place for place, item in enumerate(sorted({vote.item for vote in found[key]}))}
        sides.append((median_seconds(found[key], items), len(items)))
    (hidden, hidden_items), (shown, shown_items) = sides
    saved = bootstrap_difference(hidden, hidden_items, shown, shown_items, NO_TWO_ARMS, bootstrap=bootstrap)
    return Times(medians, saved)


def median_seconds(votes: Sequence[Vote], items: dict[int, int]) -> Measure:
    """The median of the seconds, where an item that was drawn twice counts its votes twice."""
    ordered = sorted((vote.seconds, items[vote.item]) for vote in votes if vote.seconds is not None)
    seconds = np.array([one for one, _ in ordered])
    owner = np.array([item for _, item in ordered], dtype=np.intp)

    def values(weights: Floats) -> Floats:
        return np.array([_weighted_median(seconds, row[owner]) for row in weights])

    return values


def _weighted_median(seconds: Floats, weights: Floats) -> float:
    """The median of values in ascending order that count as often as their (whole) weight says."""
    upto = weights.cumsum()
    total = upto[-1] if len(upto) else 0
    if not total:
        return float("nan")
    low, high = np.searchsorted(upto, [(total + 1) // 2, total // 2 + 1])
    return float((seconds[low] + seconds[high]) / 2)
