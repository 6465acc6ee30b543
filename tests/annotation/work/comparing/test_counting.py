"""What is compared, and what answers add up to: couples, wins, majorities, agreement, sides, grades, both orders."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from annotation.work.comparing.drawing import count_couples, draw_couples


def outcome(
    name: str, assessor: int = 1, *, comparison: int = 1, couple: tuple[int, int] = (10, 20),
    kind: Kind = "person", swapped: bool = False,
) -> ComparisonOutcome:  # fmt: skip
    return ComparisonOutcome(comparison, 5, *couple, name, assessor, kind, swapped)


def test_wins_and_sides_are_counted_by_document_and_a_tie_and_both_bad_are_half_a_win_of_each() -> None:
    assert counting.count_wins([outcome(FIRST), outcome(SECOND)]) == [(10, 20, 1.0), (20, 10, 1.0)]
    assert counting.count_wins([outcome(EQUAL)]) == counting.count_wins([outcome(BOTH_BAD)])
    assert counting.count_wins([outcome(EQUAL)]) == [(10, 20, 0.5), (20, 10, 0.5)]
    counts = counting.count_by_document([outcome(FIRST), outcome(SECOND), outcome(BOTH_BAD)])
    assert (counts[10].wins, counts[10].losses, counts[10].both_bad, counts[10].answers) == (1, 1, 1, 3)
    # Left is the side on which the preferred document was shown.
    answers = [outcome(FIRST), outcome(FIRST, swapped=True), outcome(SECOND, swapped=True), outcome(EQUAL)]
    assert counting.count_left(answers) == Hits(2, 3)


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
    (couple,) = counting.add_votes([outcome(FIRST), outcome(SECOND, comparison=2, couple=(20, 10))])
    assert (couple.first_id, couple.second_id, couple.votes[FIRST]) == (10, 20, 2), "in another set and order"


def test_agreement_is_over_the_couples_of_answers_to_one_comparison() -> None:
    three = [outcome(FIRST, 1), outcome(FIRST, 2), outcome(EQUAL, 3)]
    alone = outcome(FIRST, 1, comparison=2)
    assert counting.count_agreement([*three, alone]) == Hits(1, 3)


def test_quantiles_grade_equally_many_documents_and_equal_strengths_alike() -> None:
    strengths = [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    thresholds = counting.choose_thresholds(strengths, 3)
    assert [counting.grade_strength(strength, thresholds) for strength in strengths] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert counting.grade_strength(1.0, [1.0, 2.0]) == 1, "a threshold is the lowest strength of its grade"
    same = counting.choose_thresholds([0.0] * 4, 3)
    assert len({counting.grade_strength(0.0, same)}) == 1


OUTCOMES = (FIRST, SECOND, EQUAL, BOTH_BAD)


def test_only_what_both_orders_say_is_an_outcome_and_the_rest_is_equal_and_a_flip() -> None:
    assert set(OUTCOMES) == set(Preference.Outcome.values) == set(FORWARD.values()) == set(BACKWARD.values())
    for forward, backward in itertools.product(OUTCOMES, OUTCOMES):
        pair = OrderAnswers(forward, backward)
        assert pair.outcome == (forward if forward == backward else EQUAL)
        assert pair.is_flipped == (forward != backward)
    # The same letter in both orders is a flip, and the same document is none.
    assert OrderAnswers(FORWARD["A"], BACKWARD["B"]).outcome == FIRST
    assert OrderAnswers(FORWARD["B"], BACKWARD["A"]).outcome == SECOND
    assert OrderAnswers(FORWARD["A"], BACKWARD["A"]).is_flipped
    rate = flip_rate([OrderAnswers(FIRST, SECOND)] * 3 + [OrderAnswers(FIRST, FIRST)] * 9)
    assert (rate.value, rate.n, (rate.low, rate.high)) == (0.25, 12, tuple(clopper_pearson(3, 12)))
    assert flip_rate([]).value is None and flip_rate([]).reason


def test_agreement_with_a_majority_is_over_the_comparisons_that_both_have_answered() -> None:
    assert majority_outcome([FIRST, SECOND, EQUAL, EQUAL]) == EQUAL, "more than any other outcome"
    assert majority_outcome([FIRST, SECOND]) is majority_outcome([]) is None
    agreement = agreement_with_majority({1: FIRST, 2: EQUAL, 3: SECOND}, {2: EQUAL, 3: FIRST, 4: FIRST})
    assert (agreement.value, agreement.n) == (0.5, 2)
    assert agreement_with_majority({1: FIRST}, {}).reason


documents = st.lists(st.integers(0, 10**6), min_size=2, max_size=30, unique=True)


def reached_from(start: int, couples: list[tuple[int, int]]) -> set[int]:
    reached, size = {start}, 0
    while len(reached) > size:
        size = len(reached)
        reached |= {document for couple in couples if reached & set(couple) for document in couple}
    return reached


@given(documents, st.integers(1, 40), st.integers(0, 99))
def test_couples_connect_all_documents_with_at_least_so_many_opponents(documents, opponents, seed):
    couples = draw_couples(documents, opponents, seed)
    assert len({frozenset(couple) for couple in couples}) == len(couples) == count_couples(len(documents), opponents)
    assert reached_from(documents[0], couples) == set(documents)
    degrees = Counter(document for couple in couples for document in couple)
    assert min(degrees.values()) >= min(opponents, len(documents) - 1)
    assert max(degrees.values()) - min(degrees.values()) <= 1, "no document is asked about much more often"


def test_the_order_of_the_documents_does_not_matter_but_the_seed_does() -> None:
    couples = draw_couples(range(200), 2, seed=1)
    assert draw_couples(list(reversed(range(200))), 2, seed=1) == couples != draw_couples(range(200), 2, seed=2)
    assert 60 < sum(first < second for first, second in couples) < 140, "either of a couple may be the first"
    for few in (0, 1):
        assert (draw_couples(range(few), 3, seed=0), count_couples(few, 3)) == ([], 0)
