"""Schedule of attention checks and repeats in an annotator's work. Pure.

As in DREAM (F.2) a share of each batch is checks, at random positions: exactly that share and at
least one, so no batch is without a check. Each other position is drawn independently to be a repeat
or an ordinary item.
"""

from functools import lru_cache
from hashlib import sha256

CHECK, REPEAT, QUALIFICATION = "check", "repeat", "qualification"
SEPARATE = 20  # A pair is repeated after at least so many others.


@lru_cache(maxsize=4096)
def check_places(*, seed: int, annotator: int, begin: int, size: int, checks: float) -> frozenset[int]:
    """Return the positions (from 0) of the checks in the batch that begins with an annotator's `begin`-th item."""
    drawn = sorted(range(size), key=lambda position: _hash_fraction(f"check:{seed}:{annotator}:{begin}:{position}"))
    # The share, rounded, and at least one; none where the share is 0.
    return frozenset(drawn[: max(1, round(checks * size)) if checks > 0 else 0])


def schedule_item(
    *, seed: int, annotator: int, number: int, checks: float, repeats: float, size: int = 20, closed_to: int = 0
) -> str:
    """Return the kind of an annotator's `number`-th item (from 0): check, repeat, or "" for the queue's next."""
    if not checks and not repeats:
        return ""
    position = (number - closed_to) % size
    if position in check_places(seed=seed, annotator=annotator, begin=number - position, size=size, checks=checks):
        return CHECK
    return REPEAT if _hash_fraction(f"repeat:{seed}:{annotator}:{number}") * (1 - checks) < repeats else ""


def count_passed_checks(*, seed: int, annotator: int, number: int, checks: float, size: int, closed_to: int) -> int:
    """Count the checks scheduled before `number` in its batch, or in the half batch that follows it.

    Only the first pair of a lease group can be a check, so the checks that its other pairs skip are made up for early.
    """
    position = (number - closed_to) % size
    return sum(
        check < position + size // 2
        for check in check_places(seed=seed, annotator=annotator, begin=number - position, size=size, checks=checks)
    )


def _hash_fraction(text: str) -> float:
    return int.from_bytes(sha256(text.encode()).digest()[:6], "big") / 2**48
