"""What is computed of the arms, of changed minds, of times and of the paired study: by hand, on a few votes."""

from collections import Counter
from math import isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.agreement.measures import ONE_GRADE, compute_measures
from annotation.work.experiments import flips, moments, paired
from annotation.work.experiments.flips import count_flips, count_flips_by_side, pair_votes
from annotation.work.experiments.moments import debate_gain, measure_moments, seconds_saved
from annotation.work.experiments.paired import ArmCell, JudgedPair, paired_table
from annotation.work.experiments.resampled_measures import accuracy_measure
from annotation.work.experiments.votes import MOMENTS, Vote
from corpus.collections.arm_allocation import ARMS, SHOWN_ONLY, draw_arm, weights_of

T, F, NONE = True, False, None
P, Q = 1, 2

REVEALED = [
    # item, person, truth, first, final
    (1, P, T, 1, 1),  # right, stays
    (2, P, T, 1, 0),  # right to wrong, to "against"
    (3, P, F, 1, 0),  # wrong to right, to "against"
    (4, P, F, 0, 1),  # right to wrong, to "for"
    (5, P, T, 0, 1),  # wrong to right, to "for"
    (6, P, NONE, 0, 1),  # flips, nobody knows whether rightly
    (1, Q, T, 0, 0),  # wrong, stays
    (4, Q, F, 0, 0),  # right, stays
]


def cast(rows=REVEALED) -> list[Vote]:
    return [
        Vote(item, person, "reveal", step, bool(said), truth)
        for item, person, truth, first, final in rows
        for step, said in (("first", first), ("final", final))
    ]


def near(statistic, value, low, high, n):
    assert (statistic.n, statistic.reason) == (n, None)
    assert (statistic.value, statistic.low, statistic.high) == pytest.approx((value, low, high), abs=5e-4)


def test_the_flip_table_equals_a_count_by_hand():
    found = count_flips(pair_votes(cast()))
    assert (found.vote_pairs, found.referenced_vote_pairs) == (8, 7)
    counts = (found.stayed_right, found.right_to_wrong, found.wrong_to_right, found.stayed_wrong)
    assert counts == (2, 2, 2, 1)
    # Clopper and Pearson of 2 of 4, 2 of 3 and 5 of 8.
    near(found.right_to_wrong_share, 2 / 4, 0.0676, 0.9324, 4)
    near(found.wrong_to_right_share, 2 / 3, 0.0943, 0.9916, 3)
    near(found.flip_share, 5 / 8, 0.2449, 0.9148, 8)


def test_flips_by_the_side_that_they_go_to():
    by_side = count_flips_by_side(pair_votes(cast()))
    found = {
        side: (
            flip.vote_pairs, flip.right_to_wrong, flip.stayed_right, flip.wrong_to_right,
            flip.right_to_wrong_share.value, flip.wrong_to_right_share.value,
        )
        for side, flip in by_side.items()
    }  # fmt: skip
    # First said "not relevant": items 4, 5, 6 of P and 1, 4 of Q; right were both on 4, one of them
    # flips; Q's on 1 stays wrong. First said "relevant": items 1, 2, 3 of P.
    assert found == {"for": (5, 1, 1, 1, 1 / 2, 1 / 2), "against": (3, 1, 1, 1, 1 / 2, 1.0)}
    assert by_side["for"].stayed_wrong == 1


def test_a_first_vote_that_was_given_anew_and_one_without_a_final_vote_are_no_flips():
    rows = cast([(1, P, T, 1, 0)])
    seen = [
        Vote(2, P, "reveal", "first", True, T, is_repeated_after_debate=True),
        Vote(2, P, "reveal", "final", False, T),
    ]
    alone = [Vote(3, P, "reveal", "first", True, T)]
    assert [final.item_id for _, final in pair_votes([*rows, *seen, *alone])] == [1]


def test_without_votes_everything_is_undefined_with_a_reason():
    none = count_flips([])
    found = [none.flip_share, none.right_to_wrong_share, none.wrong_to_right_share]
    assert [(one.value, one.low, one.high, one.n) for one in found] == [(None, None, None, 0)] * 3
    assert [one.reason for one in found] == [flips.NO_FINAL_VOTE, flips.NO_RIGHT_FIRST_VOTE, flips.NO_WRONG_FIRST_VOTE]
    for side in measure_moments([], resample_count=20):
        assert (side.accuracy.value, side.accuracy.reason) == (None, "no votes yet")
        assert side.krippendorff_alpha.value is None and side.krippendorff_alpha.reason
    # Of one item there is a value and no interval, and one arm saves nothing.
    hidden = measure_moments(TIMED[2:3], resample_count=50)[0].median_seconds
    assert (hidden.value, hidden.low) == (30, None)
    saved = seconds_saved(TIMED[2:3], resample_count=50)
    assert (saved.value, saved.reason) == (None, moments.NO_TIME_IN_ARM)
    table = paired_table([], 3)
    for row in (table.hidden, table.shown, table.difference):
        assert row.fleiss.value is None and row.fleiss.reason == paired.NO_PAIR
        assert row.balanced_accuracy.value is None and row.balanced_accuracy.reason
        assert row.seconds.value is None and row.seconds.reason
    everybody_says_yes = [JudgedPair(1, ArmCell(YES3), ArmCell(YES3), T)]
    assert paired_table(everybody_says_yes, 3).hidden.fleiss.reason == ONE_GRADE


def timed(arm: str, item: int, person: int, seconds: float, **more) -> Vote:
    return Vote(item, person, arm, "final", True, seconds=seconds, **more)


TIMED = [
    timed("hidden", 1, P, 10), timed("hidden", 1, Q, 20), timed("hidden", 2, P, 30),
    timed("shown", 3, P, 5), timed("shown", 4, P, 15), timed("shown", 5, Q, 10),
]  # fmt: skip


def test_seconds_saved_are_the_difference_of_the_medians():
    found = {side.moment.key: side.median_seconds for side in measure_moments(TIMED, resample_count=400)}
    assert (found["hidden"].value, found["hidden"].n) == (20, 2)
    assert (found["shown"].value, found["shown"].n) == (10, 3)
    saved = seconds_saved(TIMED, resample_count=400)
    assert (saved.value, saved.n) == (10, 5)
    # Two items hidden: (1, 1) 15, (1, 2) 20, (2, 2) 30. Three shown: from 5 to 15. So from 0 to 25.
    assert (saved.low, saved.high) == (0, 25)
    assert found["reveal-first"].reason == "no time measured"


def known(arm: str, item: int, person: int, said: int, truth: bool) -> Vote:
    return Vote(item, person, arm, "final", bool(said), truth)


def test_arms_side_by_side_by_hand():
    """Hidden: 4 votes, right 2. Shown: 4 votes, right 3; recall of relevant 2/2, of not relevant 1/2."""
    rows = [
        known("hidden", 1, P, 1, T), known("hidden", 1, Q, 0, T),
        known("hidden", 2, P, 0, F), known("hidden", 2, Q, 1, F),
        known("shown", 3, P, 1, T), known("shown", 3, Q, 1, T), known("shown", 4, P, 1, F), known("shown", 4, Q, 0, F),
    ]  # fmt: skip
    found = {side.moment.key: side for side in measure_moments(rows, resample_count=200)}
    hidden, shown = found["hidden"], found["shown"]
    assert (hidden.item_count, hidden.vote_count, hidden.person_count) == (2, 4, 2)
    near(hidden.accuracy, 2 / 4, 0.0676, 0.9324, 4)
    near(shown.accuracy, 3 / 4, 0.1941, 0.9937, 4)
    assert (shown.recall_relevant.value, shown.recall_not_relevant.value) == (1.0, 0.5)
    assert shown.balanced_accuracy.value == 0.75
    # Equal couples: hidden 0 of 2 items, shown 1 of 2. Alpha of the hidden: 1 - 3 x (1 + 1) / (2 x 2).
    assert (hidden.equal_vote_share.value, shown.equal_vote_share.value) == (0.0, 0.5)
    assert hidden.krippendorff_alpha.value == pytest.approx(1 - 3 * 2 / 4)
    gained = debate_gain(accuracy_measure, rows, resample_count=300)
    assert (gained.value, gained.n) == (0.25, 4)
    # Shown: item 3 both right, item 4 half; hidden: always half. So from 0 to 0.5.
    assert (gained.low, gained.high) == (0.0, 0.5)


def test_agreement_of_the_reveal_arm_is_of_blind_votes_with_the_final_ones_apart():
    rows = cast([(1, P, NONE, 1, 1), (1, Q, NONE, 0, 1), (2, P, NONE, 0, 0), (2, Q, NONE, 0, 0)])
    found = {side.moment.key: side for side in measure_moments(rows, resample_count=0)}
    assert (found["reveal-first"].equal_vote_share.value, found["reveal-final"].equal_vote_share.value) == (0.5, 1.0)
    assert [moment.key for moment in MOMENTS if moment.blind] == ["hidden", "reveal-first"]


YES3, YES2, YES1, YES0 = (T, T, T), (T, T, F), (T, F, F), (F, F, F)
STUDY = [
    #       hidden                shown                 truth
    JudgedPair(1, ArmCell(YES3, (9,)), ArmCell(YES3, (6,)), T),
    JudgedPair(2, ArmCell(YES1, (20, 10, 30)), ArmCell(YES2, (10, 11, 12)), T),
    JudgedPair(3, ArmCell(YES0, (8,)), ArmCell(YES0, (8,)), F),
    JudgedPair(4, ArmCell(YES2, (12,)), ArmCell(YES0, (14,)), F),
]


def test_the_table_of_the_paired_study_by_hand():
    """Hidden: equal couples 1, 1/3, 1, 1/3, half yes: kappa (2/3 - 1/2) / (1/2). Shown: 1, 1/3, 1, 1; 5 of 12 yes."""
    table = paired_table(STUDY, 3, resample_count=300)
    assert (table.pairs, table.referenced, table.ties) == (4, 4, 0)
    assert table.hidden.fleiss.value == pytest.approx(1 / 3)
    chance = (5 / 12) ** 2 + (7 / 12) ** 2
    assert table.shown.fleiss.value == pytest.approx((10 / 12 - chance) / (1 - chance))
    # Majorities hidden: yes, no, no, yes; shown: yes, yes, no, no; truth: yes, yes, no, no.
    near(table.hidden.recall_relevant, 1 / 2, 0.0126, 0.9874, 2)
    assert (table.hidden.recall_not_relevant.value, table.hidden.balanced_accuracy.value) == (1 / 2, 1 / 2)
    near(table.shown.recall_relevant, 1.0, 0.1581, 1.0, 2)
    assert (table.shown.recall_not_relevant.value, table.shown.balanced_accuracy.value) == (1.0, 1.0)
    assert table.difference.balanced_accuracy.value == 1 / 2
    assert table.difference.fleiss.value == pytest.approx(table.shown.fleiss.value - 1 / 3)
    # Medians of the pairs: hidden 9, 20, 8, 12; shown 6, 11, 8, 14; saved 3, 9, 0, -2.
    assert (table.hidden.seconds.value, table.shown.seconds.value) == (10.5, 9.5)
    assert table.difference.seconds.value == 1.5
    assert -2 <= table.difference.seconds.low <= 1.5 <= table.difference.seconds.high <= 9


def test_fleiss_kappa_equals_the_one_of_the_agreement_page_whoever_voted():
    cells = [ArmCell(tuple(bool(int(vote)) for vote in votes)) for votes in ("111", "110", "000", "010", "111", "100")]
    grades = np.array([[int(cell.votes[person]) for cell in cells] for person in range(3)])
    mine = float(paired.fleiss_kappa(cells)(np.ones((1, len(cells))))[0])
    assert isclose(mine, compute_measures(grades).fleiss.value)
    # Three of six people on each pair.
    votes = [
        Vote(item, (item + place) % 6, "shown", "final", vote)
        for item, cell in enumerate(cells)
        for place, vote in enumerate(cell.votes)
    ]
    found = next(one for one in measure_moments(votes, resample_count=0) if one.moment.key == "shown")
    assert found.fleiss_kappa.n == 6 and isclose(found.fleiss_kappa.value, mine)


def test_pairs_that_a_group_has_not_finished_wait_and_ties_are_counted():
    started = JudgedPair(5, ArmCell((T, T)), ArmCell(YES3), T)
    assert paired_table([*STUDY, started], 3, resample_count=0).pairs == 4
    tied = JudgedPair(6, ArmCell((T, F)), ArmCell((T, T)), T)
    table = paired_table([tied], 2, resample_count=0)
    assert (table.referenced, table.ties, table.hidden.recall_relevant.value) == (1, 1, None)
    assert table.hidden.recall_relevant.reason == paired.NO_REFERENCE


WEIGHTS = st.tuples(*[st.integers(0, 7)] * 3).filter(any)


def test_weights_lose_their_common_divisor_and_missing_arms_have_none():
    assert weights_of({"shown": 1, "hidden": 0, "reveal": 0}) == SHOWN_ONLY
    assert weights_of({"shown": 50, "hidden": 25, "reveal": 25}) == (2, 1, 1)
    assert weights_of({"reveal": 3}) == (0, 0, 1)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (3, "table"), ({}, "no arm"), ({"shown": 0}, "no arm"), ({"shown": -1}, "shown the weight -1"),
        ({"shown": 101}, "shown the weight 101"), ({"shown": True}, "the weight True"), ({"seen": 1}, "names seen"),
    ],
)  # fmt: skip
def test_what_is_no_table_of_weights_is_refused(bad, why):
    with pytest.raises(ValueError, match=why):
        weights_of(bad)


@given(WEIGHTS, st.integers(), st.integers(0), st.integers(0, 1000))
def test_every_block_holds_each_arm_as_often_as_its_weight_says(weights, seed, annotator, block):
    size = sum(weights)
    drawn = Counter(draw_arm(weights, seed, annotator, block * size + place) for place in range(size))
    assert drawn == Counter({arm: weight for arm, weight in zip(ARMS, weights, strict=True) if weight})


def test_seed_and_annotator_decide_and_over_many_every_place_of_a_block_sees_every_arm_equally_often():
    """900 people: 300 for each arm at each place; four standard deviations are 4 x sqrt(900 x 1/3 x 2/3) = 57."""
    first, same, seeded, other = (
        [draw_arm((1, 1, 1), *who, number) for number in range(30)] for who in ((1, 7), (1, 7), (2, 7), (1, 8))
    )
    assert first == same and seeded != first != other
    for place in range(3):
        counted = Counter(draw_arm((1, 1, 1), 0, annotator, place) for annotator in range(900))
        assert all(abs(n - 300) < 57 for n in counted.values())
