"""Experiment arms, which decide how much of the debate an annotator reads, drawn in blocks (DREAM 3.2.4). Pure.

Each annotator has separate blocks. A block contains every arm as often as its weight says, in an
order drawn from the seed: after each whole block the arms are in proportion, and the next arm
cannot be predicted.
"""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from math import gcd

SHOWN, HIDDEN, REVEAL = "shown", "hidden", "reveal"
# The part of a debate that is shown: all rounds, or only the final one.
ALL_ROUNDS, FINAL_ROUND = "all", "final"
ARMS = (SHOWN, HIDDEN, REVEAL)
HIGHEST = 100  # The largest weight; a block has at most three times as many items.

Weights = tuple[int, int, int]  # Of shown, hidden, reveal, without a common divisor.
# Nothing is drawn: items get no arm, so that judgments before an experiment do not count as part of it.
SHOWN_ONLY: Weights = (1, 0, 0)


def weights_of(weights_table: object) -> Weights:
    """Return the weights in a table of arms; an arm that is not named has the weight 0. Raises ValueError."""
    if not isinstance(weights_table, Mapping):
        raise ValueError("must be a table like {shown=1, hidden=0, reveal=0}")
    if unknown := [str(name) for name in weights_table if name not in ARMS]:
        raise ValueError(f"names {', '.join(unknown)}; known are {', '.join(ARMS)}")
    weights = [weights_table.get(name, 0) for name in ARMS]
    for name, weight in zip(ARMS, weights, strict=True):
        if not isinstance(weight, int) or isinstance(weight, bool) or not 0 <= weight <= HIGHEST:
            raise ValueError(f"gives {name} the weight {weight!r}: whole numbers from 0 to {HIGHEST} do")
    shown, hidden, reveal = weights
    divisor = gcd(shown, hidden, reveal)
    if not divisor:
        raise ValueError("gives no arm a weight: at least one must be above 0")
    return shown // divisor, hidden // divisor, reveal // divisor


def draw_arm(weights: Weights, seed: int, annotator: int, number: int) -> str:
    """Return the arm of the annotator's `number`-th item, counted from 0."""
    size = sum(weights)
    return _shuffled_block(weights, seed, annotator, number // size)[number % size]


@lru_cache(maxsize=4096)
def _shuffled_block(weights: Weights, seed: int, annotator: int, block: int) -> tuple[str, ...]:
    """Return the arms of a block in random order, by a hash of the seed, annotator, block and position."""
    arms = [arm for arm, weight in zip(ARMS, weights, strict=True) for _ in range(weight)]
    keys = [sha256(f"{seed}:{annotator}:{block}:{position}".encode()).digest() for position in range(len(arms))]
    return tuple(arm for _, arm in sorted(zip(keys, arms, strict=True)))
