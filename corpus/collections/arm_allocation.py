"""Arms: what of the debate an annotator reads, drawn at random and in balance (DREAM 3.2.4). Pure.

Each annotator has blocks of their own. A block holds every arm as often as its weight says, in an
order that comes from the seed: after each whole block the arms are in the wanted proportion, and
nobody can tell what comes next.
"""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from math import gcd

SHOWN, HIDDEN, REVEAL = "shown", "hidden", "reveal"
# What of a debate people read where they read it: everything, or what both sides said last.
ALL_ROUNDS, FINAL_ROUND = "all", "final"
ARMS = (SHOWN, HIDDEN, REVEAL)
HIGHEST = 100  # The greatest weight: a block is at most three times as long.

Weights = tuple[int, int, int]  # Of shown, hidden, reveal, without a common divisor.
# Nothing is drawn: items keep no arm, so that what was judged before an experiment is not taken for a part of it.
SHOWN_ONLY: Weights = (1, 0, 0)


def weights_of(given: object) -> Weights:
    """Return a table's weights by arm; an unnamed arm has none. Raises ValueError."""
    if not isinstance(given, Mapping):
        raise ValueError("must be a table like {shown=1, hidden=0, reveal=0}")
    if unknown := [str(name) for name in given if name not in ARMS]:
        raise ValueError(f"names {', '.join(unknown)}; known are {', '.join(ARMS)}")
    found = [given.get(name, 0) for name in ARMS]
    for name, weight in zip(ARMS, found, strict=True):
        if not isinstance(weight, int) or isinstance(weight, bool) or not 0 <= weight <= HIGHEST:
            raise ValueError(f"gives {name} the weight {weight!r}: whole numbers from 0 to {HIGHEST} do")
    shown, hidden, reveal = found
    common = gcd(shown, hidden, reveal)
    if not common:
        raise ValueError("gives no arm a weight: at least one must be above 0")
    return shown // common, hidden // common, reveal // common


def draw_arm(weights: Weights, seed: int, annotator: int, number: int) -> str:
    """Return the arm of the `number`-th item (from 0) whose arm is drawn for this annotator."""
    size = sum(weights)
    return _shuffled_block(weights, seed, annotator, number // size)[number % size]


@lru_cache(maxsize=4096)
def _shuffled_block(weights: Weights, seed: int, annotator: int, block: int) -> tuple[str, ...]:
    """Return all arms of a block, sorted by a hash of what is known of each place."""
    arms = [arm for arm, weight in zip(ARMS, weights, strict=True) for _ in range(weight)]
    keys = [sha256(f"{seed}:{annotator}:{block}:{place}".encode()).digest() for place in range(len(arms))]
    return tuple(arm for _, arm in sorted(zip(keys, arms, strict=True)))
