"""The debate: who is asked what, where it ends (DREAM 3.1, equation 2), who changed sides without new evidence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.domain.debate import AGAINST, FOR, Agreed, Broken, Disagreed, TurnRequest, next_move
from judges.domain.stance_flip_guard import relies_on_stance_flip, without_evidence
from judges.domain.verdicts import NoVerdict
from judges.records import DebateAgent, Quote, Side, Turn

YES, NO = Turn(1, "yes, because"), Turn(0, "no, because")


def _said(pair: tuple[Turn, Turn]) -> dict[DebateAgent, Turn]:
    return dict(zip((FOR, AGAINST), pair, strict=True))


def _turns(*rounds):
    both = {
        (number, side): turn
        for number, pair in enumerate(rounds, 1)
        for side, turn in zip((FOR, AGAINST), pair, strict=True)
    }
    return {key: turn for key, turn in both.items() if turn is not None}


def test_a_debate_goes_on_where_it_stopped_and_ends_with_agreement_or_a_lost_turn():
    assert next_move(_turns((YES, YES)), 2) == Agreed(1, 1)
    assert next_move(_turns((NO, NO)), 1) == Agreed(1, 0)
    assert next_move(_turns((YES, NO), (NO, NO)), 2) == Agreed(2, 0)
    assert next_move(_turns((YES, NO), (YES, NO), (YES, YES)), 5) == Agreed(3, 1)
    assert next_move(_turns((YES, None)), 2) == TurnRequest(1, None, (AGAINST,))
    assert next_move(_turns((YES, NO), (None, NO)), 2) == TurnRequest(2, _said((YES, NO)), (FOR,))
    gone = NoVerdict("refused")
    assert next_move(_turns((gone, None)), 2) == TurnRequest(1, None, (AGAINST,))
    assert next_move(_turns((gone, NO)), 2) == Broken(1)
    assert next_move(_turns((YES, NO), (YES, gone)), 2) == Broken(2)
    with pytest.raises(ValueError, match="at least one"):
        next_move({}, 0)


CALLS = st.sampled_from([YES, NO, NoVerdict("refused"), NoVerdict("unparsed"), NoVerdict("error")])


@given(st.integers(1, 5), st.lists(st.tuples(CALLS, CALLS), min_size=5, max_size=5))
def test_a_debate_that_is_played_as_told_ends_in_time_and_says_the_truth(rounds, answers):
    turns: dict[tuple[int, DebateAgent], Turn | NoVerdict] = {}
    asked = 0
    while isinstance(move := next_move(turns, rounds), TurnRequest):
        asked += 1
        assert move.round == asked <= rounds
        assert move.agents == (FOR, AGAINST)
        assert move.history == (_said(answers[asked - 2]) if asked > 1 else None)
        turns |= dict(zip([(asked, FOR), (asked, AGAINST)], answers[asked - 1], strict=True))
    last = answers[asked - 1]
    verdicts = [turn.verdict for turn in last if isinstance(turn, Turn)]
    if isinstance(move, Agreed):
        assert verdicts == [move.label, move.label]
        assert move.round == asked
    elif isinstance(move, Disagreed):
        assert asked == rounds
        assert sorted(verdicts) == [0, 1]
    else:
        assert move == Broken(asked)
        assert len(verdicts) < 2


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


def test_an_agreement_rests_on_the_last_change_of_sides_and_a_lost_turn_changes_none() -> None:
    turns = {
        (1, FOR): turn(0), (1, AGAINST): turn(1, (0, 9)),  # for collapses; against comes over with evidence
        (2, FOR): turn(1, (10, 30)), (2, AGAINST): turn(1, (0, 9)),  # for comes back, with evidence
    }  # fmt: skip
    assert without_evidence(turns) == {(1, FOR)}
    assert not relies_on_stance_flip(turns, 2)
    again = {**turns, (2, FOR): turn(1)}
    assert without_evidence(again) == {(1, FOR), (2, FOR)}
    assert relies_on_stance_flip(again, 2), "the way back is a change of sides, too"
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
