"""What answers add up to: wins, majorities, agreement, sides and grades; and what both orders of a judge say."""

import itertools

import pytest

from annotation.agreement.proportions import clopper_pearson
from annotation.models.comparisons import Preference
from annotation.work.comparing import counting
from annotation.work.comparing.by_judges.orders import (
    BACKWARD,
    FORWARD,
    OrderAnswers,
    agreement_with_majority,
    flip_rate,
    majority_outcome,
)
from annotation.work.comparing.counting import BOTH_BAD, EQUAL, FIRST, SECOND, ComparisonOutcome, Hits, Kind


def outcome(
    name: str, assessor: int = 1, *, comparison: int = 1, couple: tuple[int, int] = (10, 20),
    kind: Kind = "person", swapped: bool = False,
) -> ComparisonOutcome:  # fmt: skip
    return ComparisonOutcome(comparison, 5, *couple, name, assessor, kind, swapped)


def test_a_tie_and_both_bad_are_half_a_win_of_each() -> None:
    assert counting.count_wins([outcome(FIRST), outcome(SECOND)]) == [(10, 20, 1.0), (20, 10, 1.0)]
    assert counting.count_wins([outcome(EQUAL)]) == counting.count_wins([outcome(BOTH_BAD)])
    assert counting.count_wins([outcome(EQUAL)]) == [(10, 20, 0.5), (20, 10, 0.5)]


def test_people_count_before_judges_in_a_comparison_that_they_answered() -> None:
    person, judge = outcome(FIRST), outcome(SECOND, 2, kind="judge")
    elsewhere = outcome(SECOND, 2, comparison=2, kind="judge")
    answers = [person, judge, elsewhere]
    assert counting.choose_sources(answers, "resolved") == [person, elsewhere]
    assert counting.choose_sources(answers, "people") == [person]
    assert counting.choose_sources(answers, "machine") == [judge, elsewhere]


@pytest.mark.parametrize(
    ("votes", "majority"),
    [([FIRST, FIRST, SECOND], FIRST), ([FIRST, SECOND], None), ([FIRST, EQUAL, BOTH_BAD], None), ([EQUAL], EQUAL)],
)
def test_a_majority_is_more_than_half_of_the_answers(votes: list[str], majority: str | None) -> None:
    (couple,) = counting.add_votes(outcome(name, assessor) for assessor, name in enumerate(votes))
    assert couple.majority == majority


def test_the_same_documents_in_another_set_and_order_are_the_same_couple() -> None:
    (couple,) = counting.add_votes([outcome(FIRST), outcome(SECOND, comparison=2, couple=(20, 10))])
    assert (couple.first_id, couple.second_id, couple.votes[FIRST]) == (10, 20, 2)


def test_agreement_is_over_the_couples_of_answers_to_one_comparison() -> None:
    three = [outcome(FIRST, 1), outcome(FIRST, 2), outcome(EQUAL, 3)]
    alone = outcome(FIRST, 1, comparison=2)
    assert counting.count_agreement([*three, alone]) == Hits(1, 3)


def test_left_is_the_side_on_which_the_preferred_document_was_shown() -> None:
    answers = [outcome(FIRST), outcome(FIRST, swapped=True), outcome(SECOND, swapped=True), outcome(EQUAL)]
    assert counting.count_left(answers) == Hits(2, 3)


def test_counts_of_a_document_are_from_its_own_side() -> None:
    counts = counting.count_by_document([outcome(FIRST), outcome(SECOND), outcome(BOTH_BAD)])
    assert (counts[10].wins, counts[10].losses, counts[10].both_bad, counts[10].answers) == (1, 1, 1, 3)


def test_quantiles_grade_equally_many_documents_and_equal_strengths_alike() -> None:
    strengths = [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    thresholds = counting.choose_thresholds(strengths, 3)
    assert [counting.grade_strength(strength, thresholds) for strength in strengths] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert counting.grade_strength(1.0, [1.0, 2.0]) == 1, "a threshold is the lowest strength of its grade"
    same = counting.choose_thresholds([0.0] * 4, 3)
    assert len({counting.grade_strength(0.0, same)}) == 1


OUTCOMES = (FIRST, SECOND, EQUAL, BOTH_BAD)


def test_the_outcomes_are_those_that_preferences_store() -> None:
    assert set(OUTCOMES) == set(Preference.Outcome.values) == set(FORWARD.values()) == set(BACKWARD.values())


def test_only_what_both_orders_say_is_an_outcome_and_the_rest_is_equal() -> None:
    for forward, backward in itertools.product(OUTCOMES, OUTCOMES):
        pair = OrderAnswers(forward, backward)
        assert pair.outcome == (forward if forward == backward else EQUAL)
        assert pair.is_flipped == (forward != backward)


def test_the_same_letter_in_both_orders_is_a_flip_and_the_same_document_is_none() -> None:
    assert OrderAnswers(FORWARD["A"], BACKWARD["B"]).outcome == FIRST
    assert OrderAnswers(FORWARD["B"], BACKWARD["A"]).outcome == SECOND
    assert OrderAnswers(FORWARD["A"], BACKWARD["A"]).is_flipped
    assert not OrderAnswers(FORWARD["both bad"], BACKWARD["both bad"]).is_flipped


def test_the_rate_of_flips_is_a_share_with_its_interval() -> None:
    rate = flip_rate([OrderAnswers(FIRST, SECOND)] * 3 + [OrderAnswers(FIRST, FIRST)] * 9)
    assert (rate.value, rate.n, (rate.low, rate.high)) == (0.25, 12, tuple(clopper_pearson(3, 12)))
    assert flip_rate([]).value is None and flip_rate([]).reason


def test_agreement_with_a_majority_is_over_the_comparisons_that_both_have_answered() -> None:
    assert majority_outcome([FIRST, SECOND, EQUAL, EQUAL]) == EQUAL, "more than any other outcome"
    assert majority_outcome([FIRST, SECOND]) is majority_outcome([]) is None
    agreement = agreement_with_majority({1: FIRST, 2: EQUAL, 3: SECOND}, {2: EQUAL, 3: FIRST, 4: FIRST})
    assert (agreement.value, agreement.n) == (0.5, 2)
    assert agreement_with_majority({1: FIRST}, {}).reason
