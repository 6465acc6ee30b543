"""The stance-flip guard: who changed sides without new evidence."""

import pytest

from judges.domain.debate import AGAINST, FOR
from judges.domain.stance_flip_guard import relies_on_stance_flip, without_evidence
from judges.domain.verdicts import NoVerdict
from judges.records import DebateAgent, Quote, Side, Turn


def turn(verdict: int, *spans: tuple[int, int] | None) -> Turn:
    """A turn that quotes these stretches of the document; None: a quote that is not in it."""
    return Turn(verdict, "", tuple(Quote("…", *(span or (None, None))) for span in spans))


@pytest.mark.parametrize(
    ("quotes", "marked"),
    [([(0, 20)], False), ([], True), ([None], True), ([None, (0, 20)], False)],
    ids=["a found quote", "no quote", "a quote that is not in the document", "one of each"],
)
def test_giving_up_the_opening_stance_needs_a_found_quote(quotes: list, marked: bool) -> None:
    turns = {(1, FOR): turn(1), (1, AGAINST): turn(1, *quotes)}
    assert without_evidence(turns) == ({(1, AGAINST)} if marked else set()), "keeping a side needs no quote"
    assert relies_on_stance_flip(turns, 1) is marked


def test_in_later_rounds_only_what_the_agent_has_not_quoted_before_is_new() -> None:
    first = {(1, FOR): turn(1, (0, 20)), (1, AGAINST): turn(0, (30, 60))}
    same = {**first, (2, FOR): turn(1, (0, 20)), (2, AGAINST): turn(1, (30, 60), (40, 50))}
    assert without_evidence(same) == {(2, AGAINST)}, "a part of an old quote is not new"
    taken_over = {**first, (2, FOR): turn(1, (0, 20)), (2, AGAINST): turn(1, (0, 20))}
    assert without_evidence(taken_over) == set(), "the opponent's sentence is new to this agent"
    longer = {**first, (2, FOR): turn(0, (0, 25)), (2, AGAINST): turn(0)}
    assert without_evidence(longer) == set()


def test_an_agreement_rests_on_the_last_change_of_sides() -> None:
    turns = {
        (1, FOR): turn(0), (1, AGAINST): turn(1, (0, 9)),  # for collapses; against comes over with evidence
        (2, FOR): turn(1, (10, 30)), (2, AGAINST): turn(1, (0, 9)),  # for comes back, with evidence
    }  # fmt: skip
    assert without_evidence(turns) == {(1, FOR)}
    assert not relies_on_stance_flip(turns, 2)
    again = {**turns, (2, FOR): turn(1)}
    assert without_evidence(again) == {(1, FOR), (2, FOR)}
    assert relies_on_stance_flip(again, 2), "the way back is a change of sides, too"


def test_a_lost_turn_neither_changes_sides_nor_hides_a_change() -> None:
    turns = {(1, FOR): NoVerdict("refused"), (1, AGAINST): turn(0), (2, FOR): turn(0), (2, AGAINST): turn(0)}
    assert without_evidence(turns) == {(2, FOR)}


def test_each_of_four_agents_answers_for_itself() -> None:
    second = DebateAgent(Side.AGAINST, 1)
    turns = {
        (1, FOR): turn(1),
        (1, DebateAgent(Side.FOR, 1)): turn(1),
        (1, AGAINST): turn(1, (0, 5)),
        (1, second): turn(1),
    }
    assert without_evidence(turns) == {(1, second)}
    assert relies_on_stance_flip(turns, 1)
