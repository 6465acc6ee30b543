"""Where checks and repeats stand in an annotator's work: a seeded share, at unpredictable places. Pure.

DREAM (F.2) puts one check into every ten tasks, at random. Here each place of each annotator is drawn for itself, so no
place tells anything of another: with a fixed number in each batch, the places of some checks would tell of the rest.
"""

from hashlib import sha256

CHECK, REPEAT, QUALIFICATION = "check", "repeat", "qualification"
SEPARATE = 20
"""A pair is asked again after so many others at the least."""


def place(*, seed: int, annotator: int, number: int, checks: float, repeats: float) -> str:
    """What the `number`-th item (from 0) of an annotator shall be: check, repeat, or "" for the next of the queue."""
    if not checks and not repeats:
        return ""
    digest = sha256(f"what comes:{seed}:{annotator}:{number}".encode()).digest()
    drawn = int.from_bytes(digest[:6], "big") / 2**48
    if drawn < checks:
        return CHECK
    return REPEAT if drawn < checks + repeats else ""
