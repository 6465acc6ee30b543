"""Samples of a log's queries: seeded, without replacement, with the probabilities that they promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.query_logs.sampling import draw_sample, share_out, strata_of

WAYS = ("uniform", "pptss", "head-torso-tail")


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=40), st.data(), st.sampled_from(WAYS))
def test_a_sample_has_the_size_and_no_query_twice(counts: list[int], data: st.DataObject, by: str) -> None:
    size, seed = data.draw(st.integers(1, len(counts))), data.draw(st.integers(0, 99))
    array = np.array(counts, dtype=np.int64)
    drawn = draw_sample(array, size, by, seed)
    assert len(drawn) == len(set(drawn.tolist())) == size and sorted(drawn) == drawn.tolist()
    assert drawn.min() >= 0 and drawn.max() < len(counts)
    assert drawn.tolist() == draw_sample(array, size, by, seed).tolist()


def shares_drawn(counts: list[int], size: int, by: str, seeds: int = 4_000) -> np.ndarray:
    drawn = np.zeros(len(counts))
    for seed in range(seeds):
        drawn[draw_sample(np.array(counts, dtype=np.int64), size, by, seed)] += 1
    return drawn / seeds


def test_pptss_draws_in_proportion_to_the_counts() -> None:
    counts = [1, 2, 3, 4, 5, 6, 7, 8, 9, 15]
    expected = 3 * np.array(counts) / sum(counts)
    assert shares_drawn(counts, 3, "pptss") == pytest.approx(expected, abs=0.03)


def test_pptss_takes_for_certain_what_is_asked_most() -> None:
    """Of 4 places 2 are the giants'; the others draw the remaining 2 in proportion to their counts."""
    counts = [10_000, 5_000, 1, 1, 2, 4]
    assert shares_drawn(counts, 4, "pptss") == pytest.approx([1, 1, 0.25, 0.25, 0.5, 1], abs=0.03)


def test_uniform_draws_each_alike() -> None:
    assert shares_drawn([1_000, 1, 1, 1], 2, "uniform") == pytest.approx([0.5] * 4, abs=0.03)


def test_head_torso_and_tail_have_a_third_of_the_traffic_each() -> None:
    counts = np.array([30, 30, *[5] * 12, *[1] * 60])
    strata = strata_of(counts)
    assert [int(counts[strata == number].sum()) for number in range(3)] == [60, 60, 60]
    assert [int((strata[draw_sample(counts, 9, "head-torso-tail", 1)] == n).sum()) for n in range(3)] == [2, 4, 3]
    assert strata_of(np.array([1, 98, 1])).tolist() == [2, 0, 2], "a giant is the head, whatever its share"


def test_what_a_small_stratum_cannot_give_comes_from_the_others() -> None:
    assert share_out(9, [1, 100, 100]) == [1, 4, 4] and share_out(7, [1, 2, 100]) == [1, 2, 4]
    assert share_out(8, [9, 9, 9]) == [3, 3, 2] and share_out(3, [0, 0, 5]) == [0, 0, 3]
