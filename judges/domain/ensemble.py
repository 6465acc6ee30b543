"""The panel's votes: whom to ask next, what the majority is, and which votes may enter a kappa (Prism 4.3, M4)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

SIZES = (1, 3, 5, 7, 9)  # Voters that a panel may have: an even number could tie.

# Expected share of votes for the pair's likelier verdict: with it, five voters cast 3.4 votes before an early stop.
ALIKE = 7 / 8

# By the judge's place on the panel, from 0: 1, 0, or None for a call that brought no verdict.
Votes = Mapping[int, int | None]


@dataclass(frozen=True, slots=True)
class Count:
    """Numbers of votes for each verdict, and of calls that brought none."""

    yes: int
    no: int
    missing: int

    @property
    def asked(self) -> int:
        """Number of finished calls, with a verdict or without."""
        return self.yes + self.no + self.missing

    def label(self, majority: int) -> int | None:
        """Return the verdict with at least `majority` votes and more than the other; None if there is none."""
        if self.yes >= majority and self.yes > self.no:
            return 1
        if self.no >= majority and self.no > self.yes:
            return 0
        return None

    def is_decided(self, majority: int, remaining: int) -> bool:
        """Return whether `remaining` more votes can no longer change the label, or bring one about."""
        outcomes = {
            Count(self.yes + extra_yes, self.no + extra_no, 0).label(majority)
            for extra_yes in range(remaining + 1)
            for extra_no in range(remaining + 1 - extra_yes)
        }
        return len(outcomes) == 1


def count_votes(votes: Iterable[int | None]) -> Count:
    """Count the votes for each verdict, and those that are missing."""
    verdicts = list(votes)
    return Count(yes=verdicts.count(1), no=verdicts.count(0), missing=verdicts.count(None))


def usual_majority(panel_size: int) -> int:
    """Return the smallest number of votes above half: 1 of 1, 2 of 3, 3 of 5, 4 of 7, 5 of 9."""
    return panel_size // 2 + 1


def asked_first(panel_size: int) -> int:
    """Return how many judges an early-stopping panel asks first: the smallest majority, three of five (M4)."""
    return usual_majority(panel_size)


def next_votes(votes: Votes, panel_size: int, majority: int, early_stop: bool, seed: int) -> list[int]:
    """Return the panel places to ask now, all at once; none when the panel is done. `seed`: see `pair_seed`."""
    if not early_stop:  # debate+ensemble asks every judge.
        return [position for position in range(panel_size) if position not in votes]
    # More than half of them (3 of 5) in a drawn order, then one by one until the rest cannot change the outcome.
    order, group_size = drawn_order(panel_size, seed), asked_first(panel_size)
    if first_group := [position for position in order[:group_size] if position not in votes]:
        return first_group
    remaining = [position for position in order[group_size:] if position not in votes]
    return remaining[:1] if remaining and not count_votes(votes.values()).is_decided(majority, len(remaining)) else []


def drawn_order(panel_size: int, seed: int) -> tuple[int, ...]:
    """Return all panel places in an order that depends on the seed alone (Fisher-Yates on the bytes of one sha256)."""
    number = int.from_bytes(sha256(str(seed).encode()).digest())
    positions = list(range(panel_size))
    for last in range(panel_size - 1, 0, -1):
        number, swap = divmod(number, last + 1)
        positions[last], positions[swap] = positions[swap], positions[last]
    return tuple(positions)


def drawn_first(panel_size: int, early_stop: bool, seed: int) -> tuple[int, ...]:
    """Return the panel places whose votes may enter agreement; two votes are compared only if both places are in it."""
    # With an early stop, later votes are cast only if the first ones differ, so they would bias kappa (M4).
    return drawn_order(panel_size, seed)[: asked_first(panel_size)] if early_stop else tuple(range(panel_size))


@cache
def expected_votes(panel_size: int, majority: int) -> float:
    """Return how many votes an early-stopping panel casts on average, if each is as likely as ALIKE says."""

    def further_votes(cast: Count) -> float:
        remaining = panel_size - cast.asked
        if cast.asked >= asked_first(panel_size) and (not remaining or cast.is_decided(majority, remaining)):
            return 0.0
        yes, no = Count(cast.yes + 1, cast.no, 0), Count(cast.yes, cast.no + 1, 0)
        return 1.0 + ALIKE * further_votes(yes) + (1 - ALIKE) * further_votes(no)

    return further_votes(Count(0, 0, 0))


def nearest_to_mean(scores: Sequence[int | None]) -> int | None:
    """Return the position of the score nearest to the mean of all scores, the first of equals; None without scores."""
    # The mean only selects: the chain and the score of the selected answer belong together (ERank 3.2).
    present_scores = {position: score for position, score in enumerate(scores) if score is not None}
    if not present_scores:
        return None
    mean = sum(present_scores.values()) / len(present_scores)
    return min(present_scores, key=lambda position: (abs(present_scores[position] - mean), position))


def pair_seed(campaign_seed: int, pair_id: int) -> int:
    """Return the seed of one pair in one campaign, the same on every machine."""
    return int.from_bytes(sha256(f"{campaign_seed}:{pair_id}".encode()).digest()[:8])
