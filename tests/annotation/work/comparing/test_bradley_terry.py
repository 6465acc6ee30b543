"""Bradley-Terry: equal to choix, indifferent to order and names, and intervals that cover what they promise."""

import choix
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from annotation.work.comparing.bradley_terry import ALPHA, Strength, Win, fit

DOCUMENTS = st.integers(0, 7)
COMPARISONS = st.tuples(DOCUMENTS, DOCUMENTS, st.sampled_from([0.5, 1.0, 2.0])).filter(lambda win: win[0] != win[1])
WINS = st.lists(COMPARISONS, min_size=1, max_size=40)


def draw_world(seed: int) -> tuple[int, list[Win]]:
    """Return a world of 2 to 16 documents, compared sparsely or often, with ties, some pairs much more than others."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(2, 17))
    strengths = rng.normal(0, rng.choice([0.3, 1, 3]), number)
    attention = rng.dirichlet(np.full(number, rng.choice([0.5, 5])))
    wins: list[Win] = []
    for _ in range(int(number * rng.choice([1, 3, 20]))):
        first, second = map(int, rng.choice(number, 2, replace=False, p=(attention + 0.01) / (attention + 0.01).sum()))
        if rng.random() < 0.2:
            wins += [(first, second, 0.5), (second, first, 0.5)]
        elif rng.random() < 1 / (1 + np.exp(strengths[second] - strengths[first])):
            wins.append((first, second, 1.0))
        else:
            wins.append((second, first, 1.0))
    return number, wins


def fit_with_choix(number: int, wins: list[Win], alpha: float) -> NDArray[np.float64]:
    # It takes no weights, so everything is counted in halves: then the likelihood is twice ours, and so is the prior.
    halves = [(winner, loser) for winner, loser, weight in wins for _ in range(round(2 * weight))]
    return np.asarray(choix.opt_pairwise(number, halves, alpha=2 * alpha, tol=1e-12), dtype=np.float64)


def test_fifty_worlds_have_the_strengths_that_choix_estimates() -> None:
    for seed in range(50):
        number, wins = draw_world(seed)
        expected = fit_with_choix(number, wins, ALPHA)
        for document, strength in fit(wins).items():
            assert strength.estimate == pytest.approx(expected[document], abs=1e-5), seed


def test_without_much_of_a_prior_it_is_the_maximum_of_the_likelihood() -> None:
    wins = [(0, 1, 6.0), (1, 0, 3.0), (1, 2, 5.0), (2, 1, 4.0), (2, 0, 2.0), (0, 2, 5.0)]
    expected = choix.mm_pairwise(3, [(winner, loser) for winner, loser, weight in wins for _ in range(int(weight))])
    assert [fit(wins, alpha=1e-9)[document].estimate for document in range(3)] == pytest.approx(expected, abs=1e-5)


def test_two_documents_have_the_log_odds_of_their_comparisons_and_the_error_of_a_logit() -> None:
    strengths = fit([(7, 9, 30.0), (9, 7, 10.0)], alpha=1e-9)
    # Half of log(30 / 10) on each side; its standard error is half of sqrt(1/30 + 1/10).
    margin = 1.959964 * np.sqrt(1 / 30 + 1 / 10) / 2
    assert strengths[7] == pytest.approx((np.log(3) / 2, np.log(3) / 2 - margin, np.log(3) / 2 + margin), abs=1e-5)
    narrow = fit([(7, 9, 30.0), (9, 7, 10.0)], alpha=1e-9, level=0.5)[7]
    assert strengths[7].low < narrow.low < narrow.high < strengths[7].high
    assert strengths[9] == pytest.approx([-value for value in (strengths[7][0], strengths[7][2], strengths[7][1])])


def test_a_document_that_won_everything_has_a_finite_strength_and_a_wide_interval() -> None:
    best, worst = fit([(1, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)])[1], fit([(1, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)])[3]
    assert 0 < best.estimate < 5 and best.low < 0 < best.high
    assert worst.estimate == pytest.approx(-best.estimate)


def test_parts_without_a_comparison_between_them_are_fitted_apart() -> None:
    first, second = [(1, 2, 3.0), (2, 1, 1.0)], [(5, 6, 1.0), (6, 7, 2.0)]
    together = fit(first + second)
    assert together == fit(first) | fit(second)
    for part in ((1, 2), (5, 6, 7)):
        assert sum(together[document].estimate for document in part) == pytest.approx(0, abs=1e-9)


def test_the_intervals_cover_the_true_strengths_in_95_of_100_worlds() -> None:
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(300):
        strengths = rng.normal(0, 1, 6)
        wins: list[Win] = []
        for _ in range(90):
            first, second = map(int, rng.choice(6, 2, replace=False))
            is_first = rng.random() < 1 / (1 + np.exp(strengths[second] - strengths[first]))
            wins.append((first, second, 1.0) if is_first else (second, first, 1.0))
        for document, interval in fit(wins).items():
            covered.append(interval.low <= strengths[document] - strengths.mean() <= interval.high)
    # 1,800 intervals: the standard error is about 0.6 of a hundred, more because those of a world are correlated.
    assert 0.93 < np.mean(covered) < 0.97


@given(WINS, st.randoms(use_true_random=False), st.permutations(range(100, 108)))
def test_order_and_names_do_not_matter_weights_add_up_and_swapped_winners_change_the_sign(wins, random, names):
    shuffled = list(wins)
    random.shuffle(shuffled)
    renamed = fit([(names[winner], names[loser], weight) for winner, loser, weight in shuffled])
    swapped = fit([(loser, winner, weight) for winner, loser, weight in wins])
    doubled, twice = fit([(winner, loser, 2 * weight) for winner, loser, weight in wins]), fit([*wins, *wins])
    for document, strength in fit(wins).items():
        assert renamed[names[document]] == pytest.approx(strength, abs=1e-7)
        assert swapped[document] == pytest.approx(Strength(-strength.estimate, -strength.high, -strength.low), abs=1e-7)
        assert doubled[document] == pytest.approx(twice[document], abs=1e-7)


def test_a_comparison_with_itself_or_without_weight_is_refused_and_none_has_no_strengths() -> None:
    for win in ((1, 1, 1.0), (1, 2, 0.0), (1, 2, -1.0), (1, 2, float("nan"))):
        with pytest.raises(ValueError, match="Comparisons are between two documents"):
            fit([win])
    assert fit([]) == {}
