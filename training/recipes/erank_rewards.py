"""Rewards and advantages of ERank's reinforcement learning (pure; ERank 3.3 and appendix I, docs/adr/0081).

Everything is about the rollouts of one query: G answers to each of its documents, all of them ranked together.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MALFORMED = -1.0
EPSILON = 1e-6  # verl's, beside the standard deviation.


@dataclass(frozen=True, slots=True)
class Rollout:
    """A sampled answer. `score`: 0 to 10, None where it is malformed; `reference`: t, the score to stay near."""

    document: str
    positive: bool
    score: int | None
    reference: float | None


def rank_scores(scores: Sequence[int | None]) -> list[int | None]:
    """Return ranks, the highest score first; equal ones share the smallest, None has none."""
    return [None if one is None else 1 + sum(other is not None and other > one for other in scores) for one in scores]


def reward_rollouts(kind: str, rollouts: Sequence[Rollout]) -> list[float]:
    """Return the reward of a query's rollouts; `kind`: rr, ndcg, se. Malformed: -1."""
    reward = REWARDS[kind](rollouts)
    ranks = rank_scores([one.score for one in rollouts])
    return [MALFORMED if rank is None else reward(one, rank) for one, rank in zip(rollouts, ranks, strict=True)]


RewardOfRank = Callable[[Rollout, int], float]


def _reciprocal_rank(rollouts: Sequence[Rollout]) -> RewardOfRank:
    """r_RR (E 3.3): 1/rank for positives, -1/(best rank of a positive) for negatives that are not below all of them."""
    return _listwise(rollouts, lambda rank: 1 / rank)


def _normalized_gain(rollouts: Sequence[Rollout]) -> RewardOfRank:
    """r_nDCG (E app. I): as r_RR with the discounted gain f(rank) = 1/log2(1 + rank), divided by the ideal sum."""
    # Which places the ideal has is left open: as many as there are formatted rollouts of positives.
    places = sum(one.positive and one.score is not None for one in rollouts)
    ideal = sum(1 / math.log2(1 + rank) for rank in range(1, places + 1))
    return _listwise(rollouts, lambda rank: 1 / math.log2(1 + rank) / ideal)


def _listwise(rollouts: Sequence[Rollout], gain: Callable[[int], float]) -> RewardOfRank:
    ranks = rank_scores([one.score for one in rollouts])
    of_positives = [rank for one, rank in zip(rollouts, ranks, strict=True) if one.positive and rank is not None]

    def reward(rollout: Rollout, rank: int) -> float:
        if rollout.positive:
            return gain(rank)
        # Without a formatted rollout of a positive there is no rank to compare with.
        if of_positives and rank <= max(of_positives):
            return -gain(min(of_positives))
        return _squared_error(rollout)

    return reward


def _squared_error(rollout: Rollout) -> float:
    if rollout.score is None or rollout.reference is None:
        raise ValueError(f"document {rollout.document} has no score, or no reference score")
    return 1 - (rollout.score - rollout.reference) ** 2 / 100


REWARDS: dict[str, Callable[[Sequence[Rollout]], RewardOfRank]] = {
    "rr": _reciprocal_rank,
    "ndcg": _normalized_gain,
    # r_SE (E app. I): every rollout by itself, t being the teacher's score.
    "se": lambda rollouts: lambda rollout, rank: _squared_error(rollout),
}


def normalize_rewards(rewards: Sequence[float]) -> list[float]:
    """Return the advantages of one document's rollouts: (r - mean)/(SD + 1e-6), SD over n - 1; all equal gives 0."""
    # Exactly 0, and not a rounding error divided by 1e-6: a document whose answers all fare alike teaches nothing.
    if len(set(rewards)) == 1:
        return [0.0] * len(rewards)
    mean, deviation = statistics.fmean(rewards), statistics.stdev(rewards)
    return [(one - mean) / (deviation + EPSILON) for one in rewards]
