"""Changed minds: what the debate does to a vote that was given before it was seen. Pure.

A flip is a final vote that says otherwise (relevant or not) than the same person's blind vote on the same item.
Right-to-wrong is the share of right first votes that end wrong, wrong-to-right of wrong first votes that end right;
right is what the reference says. The side of a flip is the one that it goes to: `for` ends relevant, `against` ends
not relevant.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import share_statistic
from annotation.experiments.votes import Vote
from charts.translation import gettext_noop

NO_RIGHT = gettext_noop("no first vote was correct")
NO_WRONG = gettext_noop("no first vote was wrong")
NO_PAIR = gettext_noop("nobody has voted both times yet")


@dataclass(frozen=True, slots=True)
class Flips:
    """`n` votes, `known` of them with a reference; counts and shares."""

    n: int
    known: int
    right_right: int
    right_wrong: int
    wrong_right: int
    wrong_wrong: int
    flipped: Statistic  # Of all votes, with a reference or not.
    right_to_wrong: Statistic
    wrong_to_right: Statistic


def both_votes(votes: Iterable[Vote]) -> list[tuple[Vote, Vote]]:
    """The first and the final vote of each person on each item of the reveal arm, where the first was blind."""
    votes = [vote for vote in votes if vote.arm == "reveal"]
    firsts = {(vote.item, vote.person): vote for vote in votes if vote.step == "first" and vote.blind}
    finals = [vote for vote in votes if vote.step == "final" and (vote.item, vote.person) in firsts]
    return [
        (firsts[vote.item, vote.person], vote) for vote in sorted(finals, key=lambda vote: (vote.item, vote.person))
    ]


def flip_table(found: Sequence[tuple[Vote, Vote]]) -> tuple[dict[str, Flips], dict[int, Flips]]:
    """The flips of first and final votes, by the side that a flip goes to and by person (assessor)."""
    people = sorted({final.person for _, final in found})
    by_side = {
        # A flip goes away from the first vote: who began with "not relevant" can only end "for".
        "for": count_flips([both for both in found if not both[0].relevant]),
        "against": count_flips([both for both in found if both[0].relevant]),
    }
    return by_side, {one: count_flips([both for both in found if both[1].person == one]) for one in people}


def count_flips(found: Sequence[tuple[Vote, Vote]]) -> Flips:
    """Counts and shares of first and final votes."""
    known = [(first, final) for first, final in found if final.truth is not None]
    to_wrong = [final.relevant is not final.truth for first, final in known if first.relevant is final.truth]
    to_right = [final.relevant is final.truth for first, final in known if first.relevant is not final.truth]
    return Flips(
        n=len(found),
        known=len(known),
        right_right=len(to_wrong) - sum(to_wrong),
        right_wrong=sum(to_wrong),
        wrong_right=sum(to_right),
        wrong_wrong=len(to_right) - sum(to_right),
        flipped=share_statistic([first.relevant is not final.relevant for first, final in found], NO_PAIR),
        right_to_wrong=share_statistic(to_wrong, NO_RIGHT),
        wrong_to_right=share_statistic(to_right, NO_WRONG),
    )
