"""How much of a document judges read. Pure."""

from dataclasses import dataclass

# Characters of a document that judges are shown; the prompt says so where there were more.
SHOWN = 24_000
# Characters that two neighbouring windows of a document share, so that no passage up to as long is cut in all of them.
SHARED = 2_000
# Where the whole document shall be read: more than any model takes.
WHOLE = 4_000_000


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a document that judges read apart: which of how many, characters."""

    number: int  # From 1.
    count: int
    start: int
    end: int
    length: int


def cut_windows(length: int) -> list[Window]:
    """Return the windows of a document with so many characters; none of one that is shown whole.

    The fewest of at most SHOWN characters, all of one length but the last, each of which begins
    SHARED characters before the one before it ends.
    """
    if length <= SHOWN:
        return []
    count = -(-(length - SHARED) // (SHOWN - SHARED))
    size = -(-(length + (count - 1) * SHARED) // count)
    starts = [number * (size - SHARED) for number in range(count)]
    return [Window(n, count, start, min(start + size, length), length) for n, start in enumerate(starts, 1)]
