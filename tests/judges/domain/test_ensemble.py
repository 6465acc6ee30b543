"""The panel: whom to ask, the majority, early stop, and which votes may enter a kappa."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from judges.domain.ensemble import Count, count_votes, drawn_first, drawn_order, next_votes, pair_seed


def test_without_early_stop_all_are_asked_and_with_it_three_together_and_the_rest_one_by_one():
    assert next_votes({}, 5, 3, False, 7) == [0, 1, 2, 3, 4]
    assert next_votes({0: 1, 3: None}, 5, 3, False, 7) == [1, 2, 4]
    assert next_votes({0: 1, 1: 1, 2: 1}, 5, 3, False, 7) == [3, 4]
    assert next_votes(dict.fromkeys(range(5), 1), 5, 3, False, 7) == []
    order = drawn_order(5, 7)
    assert next_votes({}, 5, 3, True, 7) == list(order[:3])
    agreed = dict.fromkeys(order[:3], 1)
    assert next_votes(agreed, 5, 3, True, 7) == []
    split = {order[0]: 1, order[1]: 0, order[2]: 1}
    assert next_votes(split, 5, 3, True, 7) == [order[3]]
    assert next_votes(split | {order[3]: 1}, 5, 3, True, 7) == []
    assert next_votes(split | {order[3]: 0}, 5, 3, True, 7) == [order[4]]
    assert next_votes(split | {order[3]: 0, order[4]: 0}, 5, 3, True, 7) == []
    order = drawn_order(5, 3)
    assert next_votes({order[1]: 1}, 5, 3, True, 3) == [order[0], order[2]]
    order = drawn_order(5, 1)
    assert next_votes(dict.fromkeys(order[:3], 1), 5, 4, True, 1) == [order[3]]
    assert next_votes({order[0]: 1, order[1]: 0, order[2]: None}, 5, 4, True, 1) == []
    assert next_votes({order[0]: 1, order[1]: 0, order[2]: 1}, 5, 5, True, 1) == []


@pytest.mark.parametrize(
    ("votes", "majority", "label"),
    [
        ([1, 1, 1, 0, 0], 3, 1),
        ([0, 0, 0, 1, 1], 3, 0),
        ([1, 1, 0, 0, None], 3, None),
        ([1, 1, 1, None, None], 3, 1),
        ([1, 1, 1, 0, 0], 4, None),
        ([0, 0, 0, 0, 1], 4, 0),
        ([1, 1, 0, 0], 2, None),
        ([], 3, None),
        ([None] * 5, 3, None),
    ],
)
def test_a_majority_needs_enough_equal_votes_among_those_cast(votes, majority, label):
    assert count_votes(votes).label(majority) == label


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(1, 5))
def test_settled_means_that_no_further_vote_matters(yes, no, left, majority):
    now = Count(yes, no, 0)
    later = {Count(yes + more, no + left - more, 0).label(majority) for more in range(left + 1)}
    if now.is_decided(majority, left):
        assert later == {now.label(majority)}


def test_judges_and_couples_are_drawn_equally_often_and_always_alike():
    firsts = Counter(place for pair in range(3000) for place in drawn_first(5, True, pair_seed(0, pair)))
    assert all(abs(seen / 3000 - 0.6) < 0.04 for seen in firsts.values())
    assert len(firsts) == 5
    assert drawn_first(5, False, 9) == (0, 1, 2, 3, 4)
    assert drawn_first(2, True, 9) in ((0, 1), (1, 0))
    assert drawn_order(5, pair_seed(0, 1)) == (2, 3, 0, 4, 1)
    couples = Counter(
        couple for pair in range(4000) for couple in combinations(sorted(drawn_first(5, True, pair_seed(1, pair))), 2)
    )
    assert len(couples) == 10
    assert all(abs(seen / 4000 - 0.3) < 0.04 for seen in couples.values())


def test_kappa_of_the_votes_drawn_first_is_that_of_all_votes_and_of_the_later_ones_is_not():
    rng = np.random.default_rng(0)
    truth = rng.random(6000) < 0.4
    answers = np.where(rng.random((6000, 5)) < 0.9, truth[:, None], ~truth[:, None]).astype(int)
    whole = cohen_kappa_score(answers[:, 0], answers[:, 1])
    allowed: list[tuple[int, int]] = []
    others: list[tuple[int, int]] = []
    for pair, row in enumerate(answers):
        seed, votes = pair_seed(0, pair), {}
        while places := next_votes(votes, 5, 3, True, seed):
            votes |= {place: int(row[place]) for place in places}
        if {0, 1} <= set(drawn_first(5, True, seed)):
            allowed.append((votes[0], votes[1]))
        elif {0, 1} <= votes.keys():
            others.append((votes[0], votes[1]))
    assert abs(cohen_kappa_score(*zip(*allowed, strict=True)) - whole) < 0.06
    assert cohen_kappa_score(*zip(*others, strict=True)) < whole - 0.4
