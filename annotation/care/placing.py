"""Where checks and repeats stand in an annotator's work: a seeded share of each batch, at unpredictable places. Pure.

DREAM (F.2) puts one check into every ten tasks, at random. Here each batch of an annotator has as many as the share
says, and which places they take comes from the seed: each batch can be decided, and nobody can tell what comes next,
because a check looks like any other item.
"""

from functools import lru_cache
from hashlib import sha256

CHECK, REPEAT, QUALIFICATION = "check", "repeat", "qualification"
SEPARATE = 20
"""A pair is asked again after so many others at the least."""


@lru_cache(maxsize=4096)
def _batch(seed: int, annotator: int, batch: int, size: int, checks: float, repeats: float) -> tuple[str, ...]:
    """What comes at each place of a batch; "" for an ordinary item."""
    n_checks = _count(f"checks:{seed}:{annotator}:{batch}", checks * size)
    n_repeats = _count(f"repeats:{seed}:{annotator}:{batch}", repeats * size)
    order = sorted(range(size), key=lambda place: _digest(f"place:{seed}:{annotator}:{batch}:{place}"))
    kinds = [CHECK] * n_checks + [REPEAT] * n_repeats
    found = dict(zip(order, kinds, strict=False))
    return tuple(found.get(place, "") for place in range(size))


def place(*, seed: int, annotator: int, number: int, size: int, checks: float, repeats: float) -> str:
    """What the `number`-th item (from 0) of an annotator shall be: check, repeat, or "" for the next of the queue."""
    if not checks and not repeats:
        return ""
    return _batch(seed, annotator, number // size, size, checks, repeats)[number % size]


def _count(key: str, expected: float) -> int:
    """The whole number below or above, drawn so that the mean over batches is `expected`."""
    whole = int(expected + 1e-9)
    return whole + (int.from_bytes(_digest(key)[:6], "big") / 2**48 < expected - whole - 1e-9)


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()
