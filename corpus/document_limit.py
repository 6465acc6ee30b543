"""The limit on what judges read of a document, and windows of longer documents. Pure."""

from dataclasses import dataclass

# Characters of a document that judges are shown; the prompt says if there are more.
SHOWN = 24_000
# Characters that two neighbouring windows share, so that any passage of up to this length is whole in one of them.
SHARED = 2_000
# The limit for documents that are read as a whole: more than any model takes.
WHOLE = 4_000_000


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a document that judges read separately: its number, and its characters [start, end)."""

    number: int  # From 1.
    count: int
    start: int
    end: int
    length: int


def cut_windows(length: int) -> list[Window]:
    """Return the windows of a document of this length; none for a document that is shown as a whole.

    They are as few as possible, of equal length except for the last, of at most SHOWN characters,
    and overlap by SHARED characters.
    """
    if length <= SHOWN:
        return []
    count = -(-(length - SHARED) // (SHOWN - SHARED))
    size = -(-(length + (count - 1) * SHARED) // count)
    starts = [number * (size - SHARED) for number in range(count)]
    return [Window(n, count, start, min(start + size, length), length) for n, start in enumerate(starts, 1)]
