"""Schedule of attention checks and repeats in an annotator's work. Pure.

As in DREAM (F.2) one pair in ten of each batch is a check, at random places: exactly that share,
and one at least. So no batch goes by without one. What stands at the other places is drawn for each
place alone.
"""

from functools import lru_cache
from hashlib import sha256

CHECK, REPEAT, QUALIFICATION = "check", "repeat", "qualification"
SEPARATE = 20  # A pair is asked again after so many others at the least.


@lru_cache(maxsize=4096)
def check_places(*, seed: int, annotator: int, begin: int, size: int, checks: float) -> frozenset[int]:
    """Return the places (from 0) of the checks in the batch that begins with the `begin`-th item of an annotator."""
    drawn = sorted(range(size), key=lambda place: _hash_fraction(f"check:{seed}:{annotator}:{begin}:{place}"))
    # The share, rounded, and one at least; none where the share is 0.
    return frozenset(drawn[: max(1, round(checks * size)) if checks > 0 else 0])


def schedule_item(
    *, seed: int, annotator: int, number: int, checks: float, repeats: float, size: int = 20, closed_to: int = 0
) -> str:
    """Return the kind of an annotator's `number`-th item (from 0): check, repeat, or "" for the queue's next."""
    if not checks and not repeats:
        return ""
    at = (number - closed_to) % size
    if at in check_places(seed=seed, annotator=annotator, begin=number - at, size=size, checks=checks):
        return CHECK
    return REPEAT if _hash_fraction(f"repeat:{seed}:{annotator}:{number}") * (1 - checks) < repeats else ""


def count_passed_checks(*, seed: int, annotator: int, number: int, checks: float, size: int, closed_to: int) -> int:
    """Count the places of checks that lie before `number` in its batch, or in the half batch that follows.

    Only the first pair of a whole query can be a check, so the places that its other pairs pass over come early.
    """
    at = (number - closed_to) % size
    return sum(
        one < at + size // 2
        for one in check_places(seed=seed, annotator=annotator, begin=number - at, size=size, checks=checks)
    )


def _hash_fraction(text: str) -> float:
    return int.from_bytes(sha256(text.encode()).digest()[:6], "big") / 2**48
