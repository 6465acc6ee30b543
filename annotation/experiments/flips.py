"""Changed minds: what the debate does to a vote that was given before it was seen. Pure.

A flip is a final vote that says otherwise (relevant or not) than the same person's blind vote on the same item.
Right-to-wrong is the share of right first votes that end wrong, wrong-to-right of wrong first votes that end right;
right is what the reference says. The side of a flip is the one that it goes to: `for` ends relevant, `against` ends
not relevant.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from annotation.agreement.measures import Statistic
from annotation.experiments.votes import Vote, share_statistic
from charts.translation import gettext_noop

NO_RIGHT = gettext_noop("no first vote was right")
NO_WRONG = gettext_noop("no first vote was wrong")
NO_PAIR = gettext_noop("nobody has cast both votes yet")


@dataclass(frozen=True, slots=True)
class Both:
    """A blind first and a final vote of one person on one item."""

    item: int
    person: int
    first: bool
    final: bool
    truth: bool | None


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


@dataclass(frozen=True, slots=True)
class FlipTable:
    """All votes, by the side that a flip goes to, and by person (assessor)."""

    all: Flips
    by_side: dict[str, Flips]
    by_person: dict[int, Flips]


def both_votes(votes: Iterable[Vote]) -> list[Both]:
    """First and final votes of the reveal arm side by side; without those whose first vote was not blind."""
    votes = [vote for vote in votes if vote.arm == "reveal"]
    firsts = {(vote.item, vote.person): vote for vote in votes if vote.step == "first" and vote.blind}
    finals = [vote for vote in votes if vote.step == "final" and (vote.item, vote.person) in firsts]
    return [
        Both(vote.item, vote.person, firsts[vote.item, vote.person].relevant, vote.relevant, vote.truth)
        for vote in sorted(finals, key=lambda vote: (vote.item, vote.person))
    ]


def flip_table(found: Sequence[Both]) -> FlipTable:
    """Everything that can be said of these votes."""
    sides = {"for": [one for one in found if not one.first], "against": [one for one in found if one.first]}
    people = {person: [one for one in found if one.person == person] for person in sorted({o.person for o in found})}
    return FlipTable(
        all=count_flips(found),
        by_side={side: count_flips(some) for side, some in sides.items()},
        by_person={person: count_flips(some) for person, some in people.items()},
    )


def count_flips(found: Sequence[Both]) -> Flips:
    """Counts and shares of some votes."""
    known = [one for one in found if one.truth is not None]
    right = [one for one in known if one.first is one.truth]
    wrong = [one for one in known if one.first is not one.truth]
    to_wrong = [one.final is not one.truth for one in right]
    to_right = [one.final is one.truth for one in wrong]
    return Flips(
        n=len(found),
        known=len(known),
        right_right=len(to_wrong) - sum(to_wrong),
        right_wrong=sum(to_wrong),
        wrong_right=sum(to_right),
        wrong_wrong=len(to_right) - sum(to_right),
        flipped=share_statistic([one.first is not one.final for one in found], NO_PAIR),
        right_to_wrong=share_statistic(to_wrong, NO_RIGHT),
        wrong_to_right=share_statistic(to_right, NO_WRONG),
    )
