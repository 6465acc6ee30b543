"""The debate: who is asked what in which round, and where it ends (DREAM 3.1, equation 2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.domain.debate import AGAINST, FOR, Agreed, Broken, Disagreed, TurnRequest, next_move
from judges.domain.verdicts import NoVerdict
from judges.records import DebateAgent, Turn

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


def test_equal_responses_end_it_in_any_round():
    assert next_move(_turns((YES, YES)), 2) == Agreed(1, 1)
    assert next_move(_turns((NO, NO)), 1) == Agreed(1, 0)
    assert next_move(_turns((YES, NO), (NO, NO)), 2) == Agreed(2, 0)
    assert next_move(_turns((YES, NO), (YES, NO), (YES, YES)), 5) == Agreed(3, 1)


def test_after_a_stop_between_two_turns_only_the_missing_side_is_asked():
    assert next_move(_turns((YES, None)), 2) == TurnRequest(1, None, (AGAINST,))
    assert next_move(_turns((YES, NO), (None, NO)), 2) == TurnRequest(2, _said((YES, NO)), (FOR,))


def test_a_lost_turn_ends_it_once_the_other_side_is_in():
    gone = NoVerdict("refused")
    assert next_move(_turns((gone, None)), 2) == TurnRequest(1, None, (AGAINST,))
    assert next_move(_turns((gone, NO)), 2) == Broken(1)
    assert next_move(_turns((YES, NO), (YES, gone)), 2) == Broken(2)


def test_a_debate_has_at_least_one_round():
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
