"""Flips: the final votes in the arm "reveal" that differ from the first votes, which were cast without the debate.

Shares have exact intervals (Clopper and Pearson). The module computes and reads no database.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import share_statistic
from annotation.work.experiments.votes import Vote
from charts.translation import gettext_noop
from corpus.collections.arm_allocation import REVEAL

NO_FINAL_VOTE = gettext_noop("no one has voted both times yet")
NO_RIGHT_FIRST_VOTE = gettext_noop("no first vote was correct")
NO_WRONG_FIRST_VOTE = gettext_noop("no first vote was wrong")


class VotePair(NamedTuple):
    """The blind first vote and the final vote of a person on an item of the arm "reveal"."""

    first: Vote
    final: Vote

    @property
    def is_flip(self) -> bool:
        """Whether the final vote differs from the first."""
        return self.first.relevant is not self.final.relevant


@dataclass(frozen=True, slots=True)
class FlipCounts:
    """How many people changed their votes, and whether they did so rightly."""

    vote_pairs: int
    referenced_vote_pairs: int  # Those on items with a reference grade; the next four counts add up to this number.
    stayed_right: int
    right_to_wrong: int
    wrong_to_right: int
    stayed_wrong: int
    flip_share: Statistic  # Share of flips among all pairs of votes, with a reference grade or without.
    right_to_wrong_share: Statistic  # Share of flips among the pairs whose first vote was right.
    wrong_to_right_share: Statistic  # Share of flips among the pairs whose first vote was wrong.


def pair_votes(votes: Iterable[Vote]) -> list[VotePair]:
    """Return the first and the final vote of each person on each item of the arm "reveal", by item and person.

    Final votes whose first vote was not blind are left out.
    """
    reveal_votes = [vote for vote in votes if vote.arm == REVEAL]
    first_votes = {
        (vote.item_id, vote.assessor_id): vote
        for vote in reveal_votes
        if vote.step == "first" and not vote.is_repeated_after_debate
    }
    final_votes = [
        vote for vote in reveal_votes if vote.step == "final" and (vote.item_id, vote.assessor_id) in first_votes
    ]
    final_votes.sort(key=lambda vote: (vote.item_id, vote.assessor_id))
    return [VotePair(first_votes[vote.item_id, vote.assessor_id], vote) for vote in final_votes]


def count_flips(vote_pairs: Sequence[VotePair]) -> FlipCounts:
    """Count the flips of these pairs of votes."""
    referenced = [pair for pair in vote_pairs if pair.final.reference is not None]
    # For each right and for each wrong first vote, whether the person flipped.
    flips_from_right = [pair.is_flip for pair in referenced if pair.first.is_right]
    flips_from_wrong = [pair.is_flip for pair in referenced if not pair.first.is_right]
    right_to_wrong = sum(flips_from_right)
    wrong_to_right = sum(flips_from_wrong)
    return FlipCounts(
        vote_pairs=len(vote_pairs),
        referenced_vote_pairs=len(referenced),
        stayed_right=len(flips_from_right) - right_to_wrong,
        right_to_wrong=right_to_wrong,
        wrong_to_right=wrong_to_right,
        stayed_wrong=len(flips_from_wrong) - wrong_to_right,
        flip_share=share_statistic([pair.is_flip for pair in vote_pairs], NO_FINAL_VOTE),
        right_to_wrong_share=share_statistic(flips_from_right, NO_RIGHT_FIRST_VOTE),
        wrong_to_right_share=share_statistic(flips_from_wrong, NO_WRONG_FIRST_VOTE),
    )


def count_flips_by_side(vote_pairs: Sequence[VotePair]) -> dict[str, FlipCounts]:
    """Count the flips by the side to which a person can flip: "for" after a first vote "not relevant", or "against"."""
    return {
        "for": count_flips([pair for pair in vote_pairs if not pair.first.relevant]),
        "against": count_flips([pair for pair in vote_pairs if pair.first.relevant]),
    }


def count_flips_by_person(vote_pairs: Sequence[VotePair]) -> dict[int, FlipCounts]:
    """Count the flips of each person, by the primary key of the person's assessor, in the order of these keys."""
    people = sorted({pair.final.assessor_id for pair in vote_pairs})
    return {person: count_flips([pair for pair in vote_pairs if pair.final.assessor_id == person]) for person in people}
