"""Choosing a panel, without a database: floor, copies, independence, subsets; hand-worked and planted cases."""

import re
from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score

from annotation.agreement.resampling import MISSING
from annotation.quality.panels import independence, quality, subsets
from annotation.quality.panels.choosing import choose_judges, measure_panel

RANDOM, COPY = 7, 8
"""Places of the planted judges in `field`; 0 to 6 are honest, and 8 is a copy of 0."""


def field(seed, *, pairs=300, accuracy=0.85, prevalence=0.3, yes=0.5, noise=0.0):
    """Seven judges with independent errors, one that says yes by coin, a copy of the first; and the truth."""
    random = np.random.default_rng(seed)
    truth = random.random(pairs) < prevalence
    honest = [np.where(random.random(pairs) < accuracy, truth, ~truth) for _ in range(7)]
    copy = np.where(random.random(pairs) < noise, ~honest[0], honest[0])
    return np.array([*honest, random.random(pairs) < yes, copy], dtype=np.int8), truth.astype(np.int8)


def unknown(truth):
    return np.full(len(truth), MISSING, dtype=np.int8)


def proposed_sets(choice):
    return [one.members for one in (*choice.panels.by_mean_kappa, *choice.panels.by_largest_kappa)]


# Planted judges (check 6)


@pytest.mark.parametrize("gold", [True, False], ids=["gold", "no gold"])
@pytest.mark.parametrize("yes", [0.5, 0.3, 0.05, 1.0, 0.0])
def test_a_judge_that_answers_at_random_is_never_proposed(gold, yes):
    for seed in range(15):
        votes, truth = field(seed, yes=yes)
        choice = choose_judges(votes, truth if gold else unknown(truth))
        assert proposed_sets(choice), seed
        assert not any(RANDOM in members for members in proposed_sets(choice)), seed
        assert not choice.measures.qualities[RANDOM].passes


@pytest.mark.parametrize("gold", [True, False], ids=["gold", "no gold"])
def test_without_the_floor_noise_would_win(gold):
    """The trap: the random judge has the lowest kappas of all, so the order alone would take it."""
    votes, truth = field(1)
    choice = choose_judges(votes, truth if gold else unknown(truth))
    assert min(range(9), key=lambda place: choice.measures.mean_kappas[place] or 0.0) == RANDOM
    kappas = np.array([[cohen_kappa_score(a, b) for b in votes] for a in votes])
    assert RANDOM in subsets.rank_subsets(kappas, range(9)).by_mean_kappa[0].members


@pytest.mark.parametrize("gold", [True, False], ids=["gold", "no gold"])
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_copy_is_named_and_never_sits_beside_its_original(gold, noise):
    for seed in range(15):
        votes, truth = field(seed, noise=noise)
        choice = choose_judges(votes, truth if gold else unknown(truth))
        assert choice.measures.copy_groups == ((0, COPY),), seed
        assert not any({0, COPY} <= set(members) for members in proposed_sets(choice)), seed


def test_good_judges_agree_without_being_copies():
    """97% right each: kappa between two of them is 0.85 and more, but their errors are not the same ones."""
    votes, truth = field(3, accuracy=0.97)
    choice = choose_judges(votes, truth)
    assert max(pair.kappa.value for pair in choice.measures.agreements if (pair.a, pair.b) != (0, COPY)) > 0.9
    assert choice.measures.copy_groups == ((0, COPY),)


@pytest.mark.weekly
def test_in_1200_pools_no_coin_is_proposed_no_innocent_is_called_a_copy_and_nearly_every_copy_is_named():
    named = 0
    for number in range(1200):
        random = np.random.default_rng(10_000 + number)
        noise, hard = (0.0, 0.02, 0.04)[number % 3], (0.0, 0.2)[number % 2]
        votes, truth = field(number, noise=noise)
        misled = random.random(300) < hard
        guesses = random.random(votes[:7].shape) < 0.5
        votes[:7] = np.where(misled, guesses, votes[:7])
        votes[COPY] = np.where(random.random(300) < noise, 1 - votes[0], votes[0])
        choice = choose_judges(votes, truth if number % 4 < 2 else unknown(truth))
        assert not any(RANDOM in members for members in proposed_sets(choice)), number
        assert all({0, COPY} == set(group) for group in choice.measures.copy_groups), number
        named += bool(choice.measures.copy_groups)
    assert named >= 0.98 * 1200


def test_random_judges_that_copy_each_other_do_not_lift_themselves_over_the_floor():
    """Five copies of one random judge would be most of the majority of the others; they count as one vote there."""
    votes, truth = field(5)
    planted = np.vstack([votes[:7], *[votes[RANDOM]] * 5])
    choice = choose_judges(planted, unknown(truth))
    assert choice.measures.copy_groups == ((7, 8, 9, 10, 11),)
    assert [one.passes for one in choice.measures.qualities] == [True] * 7 + [False] * 5


def test_five_random_judges_among_five_good_ones_leave_the_five_good_ones():
    votes, truth = field(6)
    random = np.random.default_rng(600).random((5, votes.shape[1])) < 0.5
    for gold in (truth, unknown(truth)):
        choice = choose_judges(np.vstack([votes[:5], random.astype(np.int8)]), gold)
        assert choice.panels.proposed.members == (0, 1, 2, 3, 4)
        assert choice.panels.panel_count == 1


def test_a_judge_that_is_half_noise_falls_far_behind_the_others_and_is_not_taken_for_independent():
    random = np.random.default_rng(800)
    votes, truth = field(8, accuracy=0.9)
    half = np.where(random.random(300) < 0.5, votes[1], random.random(300) < 0.5)
    measures = choose_judges(np.vstack([votes[:7], half]).astype(np.int8), truth).measures
    accuracy = measures.qualities[7].balanced_accuracy.value
    assert accuracy > 0.6, "above any absolute floor"
    reason = measures.qualities[7].failure_reason
    assert re.findall(r"\d\.\d{3}", reason) == [f"{accuracy:.3f}", f"{measures.floor.value:.3f}"]


def test_too_few_good_judges_are_no_panel_and_the_reason_says_so():
    votes, truth = field(9)
    assert re.findall(r"\d+", choose_judges(votes[:4], truth).panels.no_proposal_reason) == ["5", "4"]
    choice = choose_judges(votes[[0, 1, 2, 3, RANDOM, COPY]], truth)
    assert choice.panels.proposed is None and choice.panels.by_largest_kappa == ()
    assert re.findall(r"\d+", choice.panels.no_proposal_reason) == ["5", "5", "6", "4"], (
        "size, above the floor, candidates, eligible"
    )


# Quality


def test_balanced_accuracy_by_hand_and_as_scikit_learns():
    """Relevant: 3 of 4 found. Not relevant: 1 of 2 found. (0.75 + 0.5) / 2 = 0.625; two pairs have no gold."""
    truth = np.array([1, 1, 1, 1, 0, 0, MISSING, MISSING], dtype=np.int8)
    mine = np.array([1, 1, 1, 0, 0, 1, 1, 0], dtype=np.int8)
    found = quality.balanced_accuracy(mine, truth)
    assert (found.value, found.n) == (0.625, 6)

    votes, truth = field(10)
    for mine in votes:
        found = quality.balanced_accuracy(mine, truth)
        assert found.value == pytest.approx(balanced_accuracy_score(truth, mine))
        assert found.low < found.value < found.high


def test_the_majority_of_the_others_by_hand():
    """Three judges and a copy of the second. For the first: 2 of 2 others (1 and 2) must agree, else it is a tie."""
    votes = np.array([[1, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]], dtype=np.int8)
    groups = [(0,), (1, 3), (2,)]
    assert quality.majority_of_others(votes, groups, 0).tolist() == [1, MISSING, 0, 0]
    assert quality.majority_of_others(votes, groups, 3).tolist() == [1, 0, MISSING, 0], "its original says nothing"


def test_chance_is_fishers_exact_test():
    """Of 8 pairs 4 relevant; it says yes to 4, of them 3 relevant: (C(4,3)C(4,1) + C(4,4)C(4,0)) / C(8,4) = 17/70."""
    truth = np.array([1, 1, 1, 1, 0, 0, 0, 0], dtype=np.int8)
    mine = np.array([1, 1, 1, 0, 1, 0, 0, 0], dtype=np.int8)
    assert quality.chance_probability(mine, truth) == pytest.approx(17 / 70)


def test_gold_of_one_class_is_not_used_and_the_majority_of_the_others_takes_its_place():
    votes, truth = field(11)
    measures = choose_judges(votes, np.where(truth == 1, truth, MISSING).astype(np.int8)).measures
    assert measures.floor.measure == "kappa_majority"
    assert re.findall(r"\d+", measures.floor.no_gold_reason) == [str(int(truth.sum())), "0", "20"]
    accuracy = measures.qualities[0].balanced_accuracy
    assert accuracy.value is None and "one class" in accuracy.reason


def test_a_handful_of_gold_ranks_no_set_and_says_nothing_of_errors():
    votes, truth = field(11)
    few = np.where(np.arange(len(truth)) < 30, truth, MISSING).astype(np.int8)
    choice = choose_judges(votes, few)
    counts, proposal = choice.measures.reference_counts, choice.panels.proposed
    assert counts == (int((few == 0).sum()), int((few == 1).sum())) and min(counts) < 20
    assert proposal.error_correlation is None and proposal.effective_votes is None
    assert proposal.balanced_accuracy.value is None and proposal.accuracies_without_member == (None,) * 5
    assert choice.measures.qualities[0].balanced_accuracy.n == 30, "it is shown, with its interval, and decides nothing"


def test_the_floor_follows_the_field_and_can_be_set():
    assert quality.derive_floor("balanced_accuracy", [0.9, 0.8, 0.5]) == pytest.approx(0.7)
    assert quality.derive_floor("balanced_accuracy", [0.65, 0.62, None]) == 0.6, "never below"
    assert quality.derive_floor("kappa_majority", [0.7, 0.6, 0.1]) == pytest.approx(0.4)
    choice = choose_judges(*field(12), floor_value=0.99)
    assert choice.measures.floor.is_set_by_admin and choice.panels.eligible == ()
    assert "0 of 9 candidates" in choice.panels.no_proposal_reason


# Independence


def test_error_correlation_and_effective_votes_by_hand():
    """Errors of a: pairs 0, 1; of b: pairs 1, 2; of 8. phi = (1/8 - 1/16) / (3/16) = 1/3; 5 / (1 + 4/3) = 15/7."""
    truth = np.zeros(8, dtype=np.int8)
    votes = np.array([[1, 1, 0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0, 0, 0]], dtype=np.int8)
    found = independence.error_correlations(votes, truth)
    assert found[0, 1] == pytest.approx(1 / 3)
    assert found[0, 1] == pytest.approx(np.corrcoef(votes)[0, 1])
    assert independence.effective_votes(5, 1 / 3) == pytest.approx(15 / 7)
    assert independence.effective_votes(5, 1.0) == 1.0 and independence.effective_votes(5, 0.0) == 5.0
    assert independence.effective_votes(5, None) is None and independence.effective_votes(5, -0.25) == 5.0

    votes, truth = field(13)
    votes[1] = truth
    choice = choose_judges(votes, truth)
    assert np.isnan(choice.measures.error_correlations[1, 2])
    with_it = next(one for one in choice.panels.by_mean_kappa if 1 in one.members)
    assert (with_it.error_correlation, with_it.effective_votes) == (None, None)


def test_effective_votes_of_independent_judges_are_about_five_and_fall_with_shared_errors():
    """A tenth of the pairs misleads all: errors 0.235, both wrong 0.12, phi = (0.12 - 0.055) / 0.18 = 0.36, so 2.0."""
    votes, truth = field(14, pairs=4000)
    assert choose_judges(votes[:5], truth).panels.proposed.effective_votes == pytest.approx(5, abs=0.4)
    hard = np.random.default_rng(1400).random(4000) < 0.1
    misled = np.where(hard, 1 - truth, votes[:5]).astype(np.int8)
    assert choose_judges(misled, truth).panels.proposed.effective_votes == pytest.approx(2.0, abs=0.2)


# Subsets


def test_every_subset_is_looked_at_and_both_orders_are_right():
    votes, _ = field(15, pairs=200)
    kappas = np.array([[cohen_kappa_score(a, b) for b in votes] for a in votes])
    count, by_mean, by_largest = subsets.rank_subsets(kappas, range(8), shown=56)
    every = {members: [kappas[a, b] for a, b in combinations(members, 2)] for members in combinations(range(8), 5)}
    assert count == len(every) == 56
    means = {members: fmean(values) for members, values in every.items()}
    assert [one.members for one in by_mean] == sorted(means, key=means.__getitem__)
    for one in by_largest:
        assert one.largest_kappa == pytest.approx(max(every[one.members]))
        assert one.largest_kappa == pytest.approx(kappas[one.most_similar])
    assert [one.largest_kappa for one in by_largest] == sorted(one.largest_kappa for one in by_largest)

    with pytest.raises(ValueError, match="749,398 sets of 5"):
        subsets.rank_subsets(np.zeros((41, 41)), range(41))


def test_a_proposals_majority_and_what_each_member_adds_by_hand():
    """Truth 1 1 1 0 0 0. Three of five right on every pair but the first: recalls 2/3 and 1, balanced 5/6.

    Without the last one the others tie 2:2 on the first pair: half right, (2.5/3 + 1) / 2 = 11/12.
    """
    truth = np.array([1, 1, 1, 0, 0, 0], dtype=np.int8)
    first = np.array([1, 1, 0, 0, 0], dtype=np.int8)
    votes = np.column_stack([first, *[np.full(5, grade, dtype=np.int8) for grade in truth[1:]]])
    times = 20  # gold needs twenty of each class
    choice = choose_judges(np.tile(votes, times), np.tile(truth, times), floor_value=0.0)
    assert choice.panels.proposed is None, "three of them are equal: copies"
    subset = subsets.Subset((0, 1, 2, 3, 4), 0.0, 0.0, (0, 1))
    found = measure_panel(subset, votes, truth, np.zeros((5, 5)), [0.1, 0.2, 0.3, 0.4, None])
    assert found.balanced_accuracy.value == pytest.approx(5 / 6)
    assert found.accuracies_without_member[4] == pytest.approx(11 / 12)
    assert found.accuracies_without_member[0] == pytest.approx((2 / 3 + 1) / 2), "1 of 4 on the first pair: wrong"
    assert found.cost_per_pair is None
    priced = measure_panel(subset, votes, truth, np.zeros((5, 5)), [0.1, 0.2, 0.3, 0.4, 0.5])
    assert priced.cost_per_pair == pytest.approx(1.5)
