"""The panel's votes: who is asked next, what the majority is, and which votes may enter a kappa (Prism 4.3, M4)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

SIZES = (1, 3, 5, 7, 9)  # Voters that a panel may have: an even number could tie.

# Expected share of votes that are as the pair's likelier verdict: five voters then cast 3.4 before an early stop.
ALIKE = 7 / 8

# By the judge's place on the panel, from 0: 1, 0, or None for a vote that was asked for and brought no verdict.
Votes = Mapping[int, int | None]


@dataclass(frozen=True, slots=True)
class Count:
    """Votes cast, and calls that brought none."""

    yes: int
    no: int
    missing: int

    @property
    def asked(self) -> int:
        """Calls that ended, with a verdict or without."""
        return self.yes + self.no + self.missing

    def label(self, majority: int) -> int | None:
        """Return the verdict with at least `majority` votes and more than the other one; None where there is none."""
        if self.yes >= majority and self.yes > self.no:
            return 1
        if self.no >= majority and self.no > self.yes:
            return 0
        return None

    def is_decided(self, majority: int, left: int) -> bool:
        """Return whether `left` more votes can neither change the label nor bring one about."""
        outcomes = {
            Count(self.yes + more, self.no + less, 0).label(majority)
            for more in range(left + 1)
            for less in range(left + 1 - more)
        }
        return len(outcomes) == 1


def count_votes(votes: Iterable[int | None]) -> Count:
    """Count how often each verdict stands among the votes."""
    cast = list(votes)
    return Count(yes=cast.count(1), no=cast.count(0), missing=cast.count(None))


def usual_majority(panel_size: int) -> int:
    """Return the votes that are more than half: 1 of 1, 2 of 3, 3 of 5, 4 of 7, 5 of 9."""
    return panel_size // 2 + 1


def asked_first(panel_size: int) -> int:
    """Judges that an early-stopping panel asks together: the fewest who can be its majority, three of five (M4)."""
    return usual_majority(panel_size)


def next_votes(votes: Votes, panel_size: int, majority: int, early_stop: bool, seed: int) -> list[int]:
    """Return places to ask now, at the same time; empty when the panel is done. `seed`: as `pair_seed` gives it."""
    if not early_stop:  # As debate+ensemble, which asks all.
        return [place for place in range(panel_size) if place not in votes]
    # More than half of them (3 of 5) in a drawn order, then one by one until the rest cannot change the outcome.
    order, together = drawn_order(panel_size, seed), asked_first(panel_size)
    if first := [place for place in order[:together] if place not in votes]:
        return first
    rest = [place for place in order[together:] if place not in votes]
    return rest[:1] if rest and not count_votes(votes.values()).is_decided(majority, len(rest)) else []


def drawn_order(panel_size: int, seed: int) -> tuple[int, ...]:
    """All places in an order of the seed alone (Fisher-Yates on one sha256's bytes)."""
    number = int.from_bytes(sha256(str(seed).encode()).digest())
    places = list(range(panel_size))
    for last in range(panel_size - 1, 0, -1):
        number, chosen = divmod(number, last + 1)
        places[last], places[chosen] = places[chosen], places[last]
    return tuple(places)


def drawn_first(panel_size: int, early_stop: bool, seed: int) -> tuple[int, ...]:
    """Return places whose votes may enter agreement; of two votes both must be in."""
    # With early stop the later votes are cast only where the first ones differ, so they would bend kappa (M4).
    return drawn_order(panel_size, seed)[: asked_first(panel_size)] if early_stop else tuple(range(panel_size))


@cache
def expected_votes(panel_size: int, majority: int) -> float:
    """Votes that an early-stopping panel casts on average, each likely by ALIKE."""

    def more(cast: Count) -> float:
        left = panel_size - cast.asked
        if cast.asked >= asked_first(panel_size) and (not left or cast.is_decided(majority, left)):
            return 0.0
        yes, no = Count(cast.yes + 1, cast.no, 0), Count(cast.yes, cast.no + 1, 0)
        return 1.0 + ALIKE * more(yes) + (1 - ALIKE) * more(no)

    return more(Count(0, 0, 0))


def nearest_to_mean(scores: Sequence[int | None]) -> int | None:
    """Return the place of the score nearest to the mean of all that are there, the first of equals; else None."""
    # The mean only selects: chain and score of the kept one belong together (ERank 3.2).
    given = {place: score for place, score in enumerate(scores) if score is not None}
    if not given:
        return None
    mean = sum(given.values()) / len(given)
    return min(given, key=lambda place: (abs(given[place] - mean), place))


def pair_seed(campaign_seed: int, pair_id: int) -> int:
    """Return the seed of one pair in one campaign, the same on every machine."""
    return int.from_bytes(sha256(f"{campaign_seed}:{pair_id}".encode()).digest()[:8])
