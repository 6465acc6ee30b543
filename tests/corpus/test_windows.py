"""Windows of long documents: the fewest that fit, of one length, each sharing its beginning with the one before."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.document_limit import SHARED, SHOWN, cut_windows


@pytest.mark.parametrize(
    ("length", "parts"),
    [
        (0, []),
        (24_000, []),
        (24_001, [(0, 13_001), (11_001, 24_001)]),
        (46_000, [(0, 24_000), (22_000, 46_000)]),
        (46_001, [(0, 16_667), (14_667, 31_334), (29_334, 46_001)]),
    ],
)
def test_windows_of_known_lengths(length: int, parts: list[tuple[int, int]]) -> None:
    assert [(one.start, one.end) for one in cut_windows(length)] == parts


@given(st.integers(SHOWN + 1, 5_000_000))
def test_windows_cover_the_document_and_none_is_longer_than_what_is_shown(length: int) -> None:
    windows = cut_windows(length)
    assert [one.number for one in windows] == list(range(1, len(windows) + 1))
    assert {(one.count, one.length) for one in windows} == {(len(windows), length)}
    assert (windows[0].start, windows[-1].end) == (0, length)
    assert all(SHARED < one.end - one.start <= SHOWN for one in windows)
    assert all(before.end - after.start == SHARED for before, after in pairwise(windows))
    assert len(windows) == -(-(length - SHARED) // (SHOWN - SHARED)), "no fewer would do"
