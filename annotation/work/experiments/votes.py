"""The votes of people in the experiment arms, and the moments at which they are cast.

In the arm "hidden", people judge an item without the debate, and in the arm "shown" with it. In the arm "reveal", they
vote twice: before they see the debate and afterwards. The module computes and reads no database.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from corpus.collections.arm_allocation import HIDDEN, REVEAL, SHOWN


@dataclass(frozen=True, slots=True)
class Vote:
    """A person's current vote on an item. The fields have the order of the columns of read_drawn_votes.sql."""

    item_id: int
    assessor_id: int  # The primary key of the assessor that the person is.
    arm: str  # HIDDEN, SHOWN or REVEAL.
    step: str  # "first" for the first vote in the arm "reveal", otherwise "final".
    relevant: bool  # Whether the grade is at least the collection's grade `relevant_from`.
    reference: bool | None = None  # Whether the reference grade is at least `relevant_from`; None without one.
    seconds: float | None = None  # The time that the vote took; None if it was not measured.
    # Whether this is a first vote that the person undid, and cast again after they had seen the debate.
    is_repeated_after_debate: bool = False

    @property
    def is_right(self) -> bool:
        """Whether the vote agrees with the reference grade, which the item must have."""
        return self.relevant is self.reference


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment at which people vote, given by an arm and a step."""

    key: str  # The name of the moment in documents.
    arm: str
    step: str
    blind: bool  # Whether the people have not seen the debate at this moment.


MOMENTS = (
    Moment(key="hidden", arm=HIDDEN, step="final", blind=True),
    Moment(key="reveal-first", arm=REVEAL, step="first", blind=True),
    Moment(key="reveal-final", arm=REVEAL, step="final", blind=False),
    Moment(key="shown", arm=SHOWN, step="final", blind=False),
)
MOMENT_BY_KEY = {moment.key: moment for moment in MOMENTS}


def votes_at(moment: Moment, votes: Iterable[Vote]) -> list[Vote]:
    """Return the votes at a moment. A blind moment leaves out first votes that were repeated after the debate."""
    votes_at_step = [vote for vote in votes if vote.arm == moment.arm and vote.step == moment.step]
    return [vote for vote in votes_at_step if not (moment.blind and vote.is_repeated_after_debate)]


def referenced_votes(votes: Iterable[Vote]) -> list[Vote]:
    """Return the votes on items with a reference grade."""
    return [vote for vote in votes if vote.reference is not None]


def timed_votes(votes: Iterable[Vote]) -> list[Vote]:
    """Return the votes whose time was measured."""
    return [vote for vote in votes if vote.seconds is not None]
