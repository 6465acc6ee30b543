"""Rewards and advantages of ERank's reinforcement learning (pure; ERank 3.3 and appendix I, docs/adr/0081).

All functions take the rollouts of one query: G answers to each of its documents, ranked together.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MALFORMED = -1.0
EPSILON = 1e-6  # Added to the standard deviation, as in verl.


@dataclass(frozen=True, slots=True)
class Rollout:
    """A sampled answer. `score`: 0 to 10, None if malformed; `reference`: the paper's t, the score to stay close to."""

    document: str
    positive: bool
    score: int | None
    reference: float | None


def rank_scores(scores: Sequence[int | None]) -> list[int | None]:
    """Return the ranks, 1 for the highest score; equal scores share the smallest rank, and None has none."""
    numbers = [score for score in scores if score is not None]
    return [None if score is None else 1 + sum(other > score for other in numbers) for score in scores]


def reward_rollouts(kind: str, rollouts: Sequence[Rollout]) -> list[float]:
    """Return the rewards of a query's rollouts, -1 for malformed ones; `kind`: rr, ndcg or se."""
    reward = REWARDS[kind](rollouts)
    ranks = rank_scores([rollout.score for rollout in rollouts])
    return [MALFORMED if rank is None else reward(rollout, rank) for rollout, rank in zip(rollouts, ranks, strict=True)]


RewardOfRank = Callable[[Rollout, int], float]


def _normalized_gain(rollouts: Sequence[Rollout]) -> RewardOfRank:
    """Return r_nDCG (ERank appendix I): r_RR with the gain 1/log2(1 + rank), divided by the ideal sum of gains."""
    # The paper does not define the ideal: it has one rank for each well-formed rollout of a positive.
    count = sum(rollout.positive and rollout.score is not None for rollout in rollouts)
    ideal = sum(1 / math.log2(1 + rank) for rank in range(1, count + 1))
    return _listwise(rollouts, lambda rank: 1 / math.log2(1 + rank) / ideal)


def _listwise(rollouts: Sequence[Rollout], gain: Callable[[int], float]) -> RewardOfRank:
    """Return gain(rank) for positives, and -gain(best rank of a positive) for negatives not below all positives.

    A negative below all positives gets r_SE.
    """
    ranks = rank_scores([rollout.score for rollout in rollouts])
    positive_ranks = [
        rank for rollout, rank in zip(rollouts, ranks, strict=True) if rollout.positive and rank is not None
    ]

    def reward(rollout: Rollout, rank: int) -> float:
        if rollout.positive:
            return gain(rank)
        # If all rollouts of positives are malformed, there is no rank to compare with.
        if positive_ranks and rank <= max(positive_ranks):
            return -gain(min(positive_ranks))
        return _squared_error(rollout)

    return reward


def _squared_error(rollout: Rollout) -> float:
    if rollout.score is None or rollout.reference is None:
        raise ValueError(f"document {rollout.document} has no score, or no reference score")
    return 1 - (rollout.score - rollout.reference) ** 2 / 100


REWARDS: dict[str, Callable[[Sequence[Rollout]], RewardOfRank]] = {
    # r_RR (ERank 3.3).
    "rr": lambda rollouts: _listwise(rollouts, lambda rank: 1 / rank),
    "ndcg": _normalized_gain,
    # r_SE (ERank appendix I): each rollout by itself, with the teacher's score as t.
    "se": lambda rollouts: lambda rollout, rank: _squared_error(rollout),
}


def normalize_rewards(rewards: Sequence[float]) -> list[float]:
    """Return the advantages (r - mean) / (SD + 1e-6) of one document's rollouts, with the SD over n - 1."""
    # Equal rewards give exactly 0, not a rounding error divided by 1e-6: they have nothing to teach.
    if len(set(rewards)) == 1:
        return [0.0] * len(rewards)
    mean, deviation = statistics.fmean(rewards), statistics.stdev(rewards)
    return [(reward - mean) / (deviation + EPSILON) for reward in rewards]
