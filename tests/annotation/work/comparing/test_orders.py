"""What both orders of two documents say together, and how a judge agrees with people. Pure."""

import itertools

from annotation.agreement.proportions import clopper_pearson
from annotation.models.comparisons import Preference
from annotation.work.comparing.by_judges.orders import (
    BACKWARD,
    BOTH_BAD,
    EQUAL,
    FIRST,
    FORWARD,
    SECOND,
    OrderAnswers,
    agreement_with_majority,
    flip_rate,
    majority_outcome,
)

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
