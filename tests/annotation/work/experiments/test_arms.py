"""Weights of the arms and how they are drawn (corpus.collections.arm_allocation)."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.collections.arm_allocation import ARMS, SHOWN_ONLY, draw_arm, weights_of

WEIGHTS = st.tuples(*[st.integers(0, 7)] * 3).filter(any)


def test_weights_lose_their_common_divisor_and_missing_arms_have_none():
    assert weights_of({"shown": 1, "hidden": 0, "reveal": 0}) == SHOWN_ONLY
    assert weights_of({"shown": 50, "hidden": 25, "reveal": 25}) == (2, 1, 1)
    assert weights_of({"reveal": 3}) == (0, 0, 1)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (3, "table"), ({}, "no arm"), ({"shown": 0}, "no arm"), ({"shown": -1}, "shown the weight -1"),
        ({"shown": 101}, "shown the weight 101"), ({"shown": True}, "the weight True"), ({"seen": 1}, "names seen"),
    ],
)  # fmt: skip
def test_what_is_no_table_of_weights_is_refused(bad, why):
    with pytest.raises(ValueError, match=why):
        weights_of(bad)


@given(WEIGHTS, st.integers(), st.integers(0), st.integers(0, 1000))
def test_every_block_holds_each_arm_as_often_as_its_weight_says(weights, seed, annotator, block):
    size = sum(weights)
    drawn = Counter(draw_arm(weights, seed, annotator, block * size + place) for place in range(size))
    assert drawn == Counter({arm: weight for arm, weight in zip(ARMS, weights, strict=True) if weight})


def test_the_seed_and_the_annotator_decide_the_order():
    def sequence(seed: int, annotator: int) -> list[str]:
        return [draw_arm((1, 1, 1), seed, annotator, number) for number in range(30)]

    assert sequence(1, 7) == sequence(1, 7)
    assert sequence(1, 7) != sequence(2, 7)
    assert sequence(1, 7) != sequence(1, 8)


def test_over_many_annotators_every_place_of_a_block_sees_every_arm_equally_often():
    """900 people: 300 for each arm at each place; four standard deviations are 4 x sqrt(900 x 1/3 x 2/3) = 57."""
    for place in range(3):
        counted = Counter(draw_arm((1, 1, 1), 0, annotator, place) for annotator in range(900))
        assert all(abs(n - 300) < 57 for n in counted.values())
