"""Rewards of ERank's reinforcement learning, by hand (ERank 3.3 and appendix I)."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from judges.domain.chains import parse_answer, render_answer
from training.recipes.erank_rewards import Rollout, normalize_rewards, rank_scores, reward_rollouts


def rollouts_of(*documents):
    """(positive, reference, scores) of each document -> its rollouts, one document after the other."""
    return [
        Rollout(f"d{place}", positive, score, reference)
        for place, (positive, reference, scores) in enumerate(documents, 1)
        for score in scores
    ]


# d1 is relevant and scored 9 and 7; d2 is not: 8 and 3, t = 2; d3 is not: 7 and malformed.
THREE = rollouts_of((True, 9, (9, 7)), (False, 2, (8, 3)), (False, 5, (7, None)))


REWARDS = {
    "rr": [1, 1 / 3, -1, 0.99, -1, -1],
    "ndcg": [0.613147, 0.306574, -0.613147, 0.99, -0.613147, -1],
    "se": [1, 0.96, 0.64, 0.99, 0.96, -1],
}


@pytest.mark.parametrize("kind", REWARDS)
def test_rewards_by_hand_and_malformed_rollouts_leave_the_others_as_they_were(kind):
    assert rank_scores([one.score for one in THREE]) == [1, 3, 2, 5, 3, None], "over all rollouts of the query"
    assert reward_rollouts(kind, THREE) == pytest.approx(REWARDS[kind], abs=1e-6)
    without = [one for one in THREE if one.score is not None]
    assert reward_rollouts(kind, THREE) == [*reward_rollouts(kind, without), -1.0]


@pytest.mark.parametrize("kind", ["rr", "ndcg"])
def test_a_negative_that_ties_with_the_worst_positive_is_penalised(kind):
    rewards = reward_rollouts(kind, rollouts_of((True, None, (9, 5)), (False, 5, (5, 4))))
    best = 1 if kind == "rr" else 1 / (1 + 1 / math.log2(3))
    assert rewards[2] == pytest.approx(-best) and rewards[3] == pytest.approx(0.99)


def test_two_positives_that_tie_are_both_first_and_a_missing_reference_is_refused():
    assert reward_rollouts("rr", rollouts_of((True, None, (9,)), (True, None, (9,)), (False, 8, (8,)))) == [1, 1, 1]
    with pytest.raises(ValueError, match=r"d2 .* reference score"):
        reward_rollouts("se", rollouts_of((True, 9, (9,)), (False, None, (1,))))


def test_without_a_formatted_positive_negatives_are_measured_by_their_squared_error():
    lost = rollouts_of((True, 9, (None, None)), (False, 2, (8, 3)))
    for kind in ("rr", "ndcg"):
        assert reward_rollouts(kind, lost) == pytest.approx([-1, -1, 0.64, 0.99])


def test_what_is_read_and_what_is_malformed():
    assert [parse_answer(f"<think>a\nb</think>\n<answer> {score} </answer>\n") for score in range(11)] == [*range(11)]
    chain = "<think>a</think>"
    for text in (
        f"{chain}<answer>11</answer>", f"{chain}<answer>7.5</answer>", f"{chain}<answer>07</answer>", "<think>a",
        f"{chain}<answer>7</answer><answer>8</answer>", "<think>a<answer>6</answer></think><answer>7</answer>",
        f"{chain}<think>b</think><answer>7</answer>", f"{chain}<answer>7</answer> That is all.",
        f"It is 7. {chain}<answer>7</answer>", f"{chain} so <answer>7</answer>", "<answer>7</answer>",
    ):  # fmt: skip
        assert parse_answer(text) is None, text


@given(st.text(max_size=40) | st.sampled_from(["<answer>3</answer>", "a</think>", "<think>"]), st.integers(0, 10))
def test_a_written_answer_is_read_back_whatever_the_chain_holds(chain, score):
    assert parse_answer(render_answer(chain, score)) == score


def test_advantages_by_hand():
    found = normalize_rewards([1, 0.5, 1 / 3, 0.25, -1])
    assert found == pytest.approx([1.05892, 0.38301, 0.15771, 0.04506, -1.64471], abs=1e-4)
    assert normalize_rewards([1, 1 / 3]) == pytest.approx([0.70711, -0.70711], abs=1e-4)
    assert all(normalize_rewards([reward] * 5) == [0.0] * 5 for reward in (0.3, -1.0, 1 / 3, 0.1 + 0.2))


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8))
def test_advantages_are_verl_s(rewards):
    given_ = torch.tensor(rewards, dtype=torch.float64)
    expected = (given_ - given_.mean()) / (given_.std() + 1e-6)
    assert normalize_rewards(rewards) == pytest.approx(expected.tolist(), abs=1e-6)
