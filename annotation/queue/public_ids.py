"""Numbers of items on annotators' pages: they tell nothing of when or why an item was made.

Items are numbered in the order in which they came to be, so the plain number of an attention check, or of a repeat,
would stand out. Pages show it in disguise: a Feistel network over 50 bits with a key of this site, above every plain
number. Plain numbers are understood as well: programs know them from exports.
"""

from functools import lru_cache
from hashlib import blake2b

from django.conf import settings

MARK = 1 << 52
"""Set in every disguised number; what is below 2^53 is exact in JavaScript too."""
HALF = 25
MASK = (1 << HALF) - 1
ROUNDS = range(6)


def shown(item: int) -> int:
    """The number of an item as pages show it; reversible, and different for each item below 2^50."""
    left, right = item >> HALF, item & MASK
    for turn in ROUNDS:
        left, right = right, left ^ _mixed(turn, right)
    return MARK | left << HALF | right


def meant(number: int) -> int:
    """The item that a page's number names; a plain number names itself."""
    if number < MARK or number >= MARK << 1:
        return number
    left, right = (number & (MARK - 1)) >> HALF, number & MASK
    for turn in reversed(ROUNDS):
        left, right = right ^ _mixed(turn, left), left
    return left << HALF | right


def _mixed(turn: int, half: int) -> int:
    digest = blake2b(half.to_bytes(4, "big"), digest_size=4, key=_key(), person=bytes([turn])).digest()
    return int.from_bytes(digest, "big") & MASK


@lru_cache(maxsize=1)
def _key() -> bytes:
    return blake2b(settings.SECRET_KEY.encode(), digest_size=32, person=b"item numbers").digest()
