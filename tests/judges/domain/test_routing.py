"""The decision table of routing: one outcome and one reason for every evidence, in the table's order."""

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judges.domain.debate import FOR, PAIR, Agreed, TurnRequest, next_move
from judges.domain.ensemble import count_votes
from judges.domain.routing import (
    EscalationReason,
    NotOver,
    NoVerdict,
    RoutingOutcome,
    RoutingPolicy,
    RoutingState,
    decide,
    deciding_window,
    escalate_outcome,
)
from judges.records import Turn

YES, NO = Turn(1, ""), Turn(0, "")
ERROR, REFUSED, UNPARSED = NoVerdict("error"), NoVerdict("refused"), NoVerdict("unparsed")
TRUNCATED, OUT_OF_RANGE = NoVerdict("truncated"), NoVerdict("out_of_range")
BOTH = "debate+ensemble"


def _debate(*rounds):
    return {(n, side): turn for n, pair in enumerate(rounds, 1) for side, turn in zip(PAIR, pair, strict=True)}


def _votes(*cast):
    return dict(enumerate(cast))


def _reason(policy, turns, votes, majority=3, rounds=2):
    return decide(policy, rounds, majority, turns, votes).reason


AGREED, OPEN = _debate((YES, YES)), _debate((YES, NO), (NO, YES))
FIVE_YES, FIVE_NO = _votes(*[YES] * 5), _votes(*[NO] * 5)
SPLIT = _votes(YES, YES, NO, NO, REFUSED)


@pytest.mark.parametrize(
    ("turns", "votes", "state", "reason"),
    [
        (_debate((ERROR, REFUSED)), FIVE_YES, "failed", "error"),
        (_debate((REFUSED, UNPARSED)), _votes(YES, YES, YES, YES, ERROR), "failed", "error"),
        (AGREED, _votes(YES, YES, YES, YES, ERROR), "failed", "error"),
        (_debate((REFUSED, UNPARSED)), SPLIT, "escalated", "refused"),
        (_debate((YES, NO), (UNPARSED, REFUSED)), FIVE_NO, "escalated", "refused"),
        (_debate((UNPARSED, YES)), SPLIT, "escalated", "unparsed"),
        (_debate((NO, TRUNCATED)), FIVE_NO, "escalated", "unparsed"),
        (_debate((YES, NO), (OUT_OF_RANGE, YES)), FIVE_YES, "escalated", "unparsed"),
        (OPEN, SPLIT, "escalated", "disagreement"),
        (OPEN, FIVE_YES, "escalated", "disagreement"),
        (AGREED, SPLIT, "escalated", "split"),
        (AGREED, _votes(YES, YES, UNPARSED, TRUNCATED, OUT_OF_RANGE), "escalated", "split"),
        (AGREED, FIVE_NO, "escalated", "conflict"),
        (AGREED, _votes(YES, YES, NO, NO, NO), "escalated", "conflict"),
        (AGREED, _votes(YES, YES, NO, NO, YES), "labelled", ""),
        (AGREED, _votes(YES, YES, YES, REFUSED, UNPARSED), "labelled", ""),
    ],
)
def test_the_first_row_that_holds_decides(turns, votes, state, reason):
    outcome = decide(BOTH, 2, 3, turns, votes)
    assert (outcome.state, outcome.reason) == (state, reason)
    assert outcome.label == (1 if state == "labelled" else None)


def test_each_policy_looks_at_its_own_evidence():
    assert decide("debate", 2, 3, AGREED, FIVE_NO).label == 1
    assert decide("debate", 2, 3, AGREED, {}).label == 1
    assert decide("debate", 2, 3, OPEN, {}).reason == "disagreement"
    assert decide("ensemble", 2, 3, OPEN, FIVE_NO).label == 0
    assert decide("ensemble", 2, 3, {}, FIVE_NO).agreed_in_round is None
    assert _reason("ensemble", _debate((ERROR, REFUSED)), SPLIT) == "split"
    assert _reason("ensemble", {}, _votes(YES, YES, YES, NO, ERROR)) == "error"
    assert decide("ensemble", 2, 4, {}, _votes(YES, YES, YES, NO, NO)).reason == "split"
    assert decide("ensemble", 2, 4, {}, _votes(YES, YES, YES, YES, NO)).label == 1
    assert decide("ensemble", 2, 3, {}, {0: NO, 2: NO, 4: NO}).label == 0
    assert decide("human", 2, 3, {}, {}) == RoutingOutcome("escalated", None, "policy", None, 1.0)
    assert decide("human", 2, 3, AGREED, FIVE_YES).reason == "policy"
    assert not RoutingPolicy.HUMAN.debates and not RoutingPolicy.HUMAN.votes
    labelled = decide(BOTH, 2, 3, AGREED, FIVE_YES)
    assert escalate_outcome(labelled) == RoutingOutcome("escalated", None, "stopped", 1, labelled.uncertainty)


@pytest.mark.parametrize(
    ("vote", "state", "label", "reason"),
    [
        (YES, "labelled", 1, ""),
        (NO, "labelled", 0, ""),
        (REFUSED, "failed", None, "refused"),
        (UNPARSED, "failed", None, "unparsed"),
        (TRUNCATED, "failed", None, "unparsed"),
        (OUT_OF_RANGE, "failed", None, "unparsed"),
        (ERROR, "failed", None, "error"),
    ],
)
def test_single_labels_by_a_verdict_and_fails_without_one(vote, state, label, reason):
    outcome = decide("single", 2, 3, {}, {0: vote})
    assert (outcome.state, outcome.label, outcome.reason) == (state, label, reason)


def test_what_is_not_over_is_not_decided():
    for policy, turns, votes in (
        ("debate", {}, {}),
        ("debate", _debate((YES, NO)), FIVE_YES),
        (BOTH, AGREED, {}),
        (BOTH, {(1, FOR): REFUSED}, FIVE_YES),
        ("ensemble", AGREED, {}),
        ("single", AGREED, {}),
    ):
        with pytest.raises(NotOver):
            decide(policy, 2, 3, turns, votes)
    with pytest.raises(ValueError, match="lara"):
        decide("lara", 2, 3, AGREED, FIVE_YES)


def test_the_round_of_agreement_is_kept_and_failed_pairs_go_to_people_only_where_asked_for():
    second = _debate((YES, NO), (NO, NO))
    assert decide(BOTH, 2, 3, second, FIVE_NO).agreed_in_round == 2
    assert decide(BOTH, 2, 3, second, FIVE_YES).agreed_in_round == 2
    assert decide(BOTH, 2, 3, OPEN, FIVE_YES).agreed_in_round is None
    for policy in set(RoutingPolicy) - {RoutingPolicy.HUMAN}:
        turns, votes = _debate((ERROR, YES)), _votes(ERROR)
        assert decide(policy, 2, 3, turns, votes).state == "failed"
        sent = decide(policy, 2, 3, turns, votes, failed_to_people=True)
        assert (sent.state, sent.reason) == ("escalated", "error")


CALL = st.sampled_from([YES, NO, ERROR, REFUSED, UNPARSED, TRUNCATED, OUT_OF_RANGE])
MOSTLY = st.sampled_from([YES, YES, NO, NO, REFUSED, UNPARSED, ERROR])


@st.composite
def evidence(draw):
    rounds = draw(st.integers(1, 5))
    turns = {}
    while isinstance(move := next_move(turns, rounds), TurnRequest):
        turns |= {(move.round, side): draw(CALL if draw(st.booleans()) else MOSTLY) for side in PAIR}
    votes = _votes(*draw(st.lists(CALL | MOSTLY, min_size=1, max_size=5)))
    return rounds, turns, votes


@given(st.sampled_from(list(RoutingPolicy)), st.integers(1, 5), evidence(), st.booleans())
def test_every_evidence_has_one_outcome_and_no_label_without_verdicts(policy, majority, given_evidence, to_people):
    rounds, turns, votes = given_evidence
    outcome = decide(policy, rounds, majority, turns, votes, failed_to_people=to_people)
    assert isinstance(outcome, RoutingOutcome)
    assert outcome == decide(policy, rounds, majority, turns, votes, failed_to_people=to_people)
    assert (
        (outcome.label is not None)
        == (outcome.state is RoutingState.LABELLED)
        == (outcome.reason is EscalationReason.NONE)
    )
    assert 0.0 <= outcome.uncertainty <= 1.0
    if outcome.state is RoutingState.FAILED:
        assert not to_people
    if outcome.state is RoutingState.LABELLED:
        _check_label(policy, rounds, majority, turns, votes, outcome)


def _check_label(policy, rounds, majority, turns, votes, outcome):
    """A label rests on verdicts: the two last turns, and at least `majority` votes, all equal to it."""
    if policy.debates:
        last = max(number for number, _ in turns)
        assert [turns[last, side].verdict for side in PAIR] == [outcome.label] * 2
        assert not any(isinstance(turn, NoVerdict) for turn in turns.values())
        assert next_move(turns, rounds) == Agreed(last, outcome.label)
    if policy in (RoutingPolicy.ENSEMBLE, RoutingPolicy.DEBATE_ENSEMBLE):
        assert sum(vote == Turn(outcome.label, "") for vote in votes.values()) >= majority
    if policy is RoutingPolicy.SINGLE:
        assert outcome.label in {vote.verdict for vote in votes.values() if isinstance(vote, Turn)}
    used = list(turns.values()) * policy.debates + list(votes.values()) * policy.votes
    assert ERROR not in used


@given(st.sampled_from(list(RoutingPolicy)), evidence())
def test_the_label_follows_when_every_verdict_is_turned_round(policy, given_evidence):
    rounds, turns, votes = given_evidence
    one = decide(policy, rounds, 3, turns, votes)
    other = decide(
        policy,
        rounds,
        3,
        {key: _turned(turn) for key, turn in turns.items()},
        {key: _turned(vote) for key, vote in votes.items()},
    )
    assert (one.state, one.reason, one.uncertainty) == (other.state, other.reason, other.uncertainty)
    assert one.label is None or one.label == 1 - other.label


def _turned(call):
    return call if isinstance(call, NoVerdict) else Turn(1 - call.verdict, call.reason)


def _doubt(turns, votes, policy=BOTH, rounds=3):
    return decide(policy, rounds, 3, turns, votes).uncertainty


def test_uncertainty_grows_with_rounds_tight_votes_and_contradiction():
    agreed = [_debate(*[(YES, NO)] * before, (YES, YES)) for before in range(3)]
    unsettled = _debate(*[(YES, NO)] * 3)
    votes = [FIVE_YES, _votes(YES, YES, YES, YES, NO), _votes(YES, YES, YES, NO, NO)]
    for few, many in zip(agreed, [*agreed[1:], unsettled], strict=True):
        for wide, narrow in pairwise(votes):
            assert _doubt(few, wide) < _doubt(many, wide)
            assert _doubt(few, wide) < _doubt(few, narrow)
    assert _doubt(agreed[0], FIVE_YES) == 0.0
    assert _doubt(unsettled, _votes(YES, YES, NO, NO, REFUSED)) == 1.0
    assert _doubt(agreed[0], FIVE_NO) > _doubt(agreed[2], FIVE_YES)
    assert _doubt(agreed[0], FIVE_YES) < _doubt(agreed[0], _votes(YES, YES, YES, YES, REFUSED))
    assert _doubt(unsettled, FIVE_YES, "debate") == 1.0
    assert _doubt({}, FIVE_YES, "ensemble") == 0.0


@given(st.lists(st.sampled_from([YES, NO, REFUSED]), min_size=5, max_size=5))
def test_a_narrower_margin_never_lowers_uncertainty(cast):
    tally = count_votes(None if isinstance(vote, NoVerdict) else vote.verdict for vote in cast)
    assume(tally.yes != tally.no)
    narrower = list(cast)
    more = YES if tally.yes >= tally.no else NO
    if more in narrower:
        narrower[narrower.index(more)] = REFUSED
    assert _doubt({}, _votes(*narrower), "ensemble") >= _doubt({}, _votes(*cast), "ensemble")


WINDOWS = [
    RoutingOutcome(RoutingState.LABELLED, label, EscalationReason.NONE, None, doubt)
    for label in (0, 1)
    for doubt in (0.0, 0.4)
]
FAILED_ONE = RoutingOutcome(RoutingState.FAILED, None, EscalationReason.ERROR, None, 0.5)
SPLIT_ONE = RoutingOutcome(RoutingState.ESCALATED, None, EscalationReason.SPLIT, None, 0.8)


@pytest.mark.parametrize(
    ("outcomes", "place"),
    [
        ([WINDOWS[0]], 0),
        ([FAILED_ONE, SPLIT_ONE, WINDOWS[0], WINDOWS[3], WINDOWS[2]], 4),  # one relevant window is enough: the surest
        ([SPLIT_ONE, WINDOWS[1], FAILED_ONE], 2),
        ([WINDOWS[1], SPLIT_ONE, WINDOWS[0]], 1),
        ([WINDOWS[0], WINDOWS[1], WINDOWS[1]], 1),  # none is relevant: the first of the least sure
    ],
)
def test_the_window_that_decides_about_a_long_document(outcomes: list[RoutingOutcome], place: int) -> None:
    assert deciding_window(outcomes) == place


@given(st.lists(st.sampled_from([*WINDOWS, FAILED_ONE, SPLIT_ONE]), min_size=1, max_size=6))
def test_a_document_is_relevant_exactly_if_a_window_is_and_not_relevant_only_if_all_say_so(outcomes) -> None:
    decided = outcomes[deciding_window(outcomes)]
    assert (decided.label == 1) == any(one.label == 1 for one in outcomes)
    assert (decided.label == 0) == all(one.label == 0 for one in outcomes)
    assert decided.state is not RoutingState.ESCALATED or FAILED_ONE not in outcomes
