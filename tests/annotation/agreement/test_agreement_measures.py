"""Agreement measures: published values, scikit-learn, and what is undefined."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from annotation.agreement.measures import NO_DOUBLE, NO_ITEM, ONE_ASSESSOR, ONE_GRADE, compute_measures
from annotation.agreement.resampling import draw_resamples

_ = -1


def raters(counts: list[list[int]]) -> np.ndarray:
    """Items x grades with the number of assessors who gave it, as assessors x items."""
    return np.array([[grade for grade, n in enumerate(row) for _again in range(n)] for row in counts]).T


FLEISS_WIKIPEDIA = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "kappa", "digits"),
    [
        (FLEISS_WIKIPEDIA, 0.20993070442195522, 1e-12),
        ([[7, 1], [3, 5]], 0.161905, 5e-7),
        ([[6, 1, 0], [0, 7, 0]], 0.708333, 5e-7),
    ],
)
def test_fleiss_kappa_of_published_tables(counts, kappa, digits):
    measured = compute_measures(raters(counts))
    assert measured.fleiss.value == pytest.approx(kappa, abs=digits)
    assert measured.fleiss.n == len(counts)


def fleiss_by_hand(counts):
    """The formula of 1971, as statsmodels writes it: a table of items x grades, equally many votes in each row."""
    table = np.asarray(counts, dtype=float)
    votes = table.sum(axis=1)[0]
    chance = ((table.sum(axis=0) / table.sum()) ** 2).sum()
    observed = ((table**2).sum(axis=1) - votes) / (votes * (votes - 1))
    return (observed.mean() - chance) / (1 - chance)


def six_people_three_votes_each(seed):
    """40 items, each graded by three of six people."""
    random = np.random.default_rng(seed)
    grades = np.full((6, 40), _)
    truth = random.integers(0, 2, 40)
    for item in range(40):
        who = random.choice(6, 3, replace=False)
        grades[who, item] = np.where(random.random(3) < 0.65, truth[item], 1 - truth[item])
    return grades


def test_fleiss_kappa_takes_items_with_the_same_number_of_votes_whoever_cast_them():
    """Nobody graded everything, so it was "undefined"."""
    for seed in range(5):
        grades = six_people_three_votes_each(seed)
        counts = np.stack([(grades == 0).sum(axis=0), (grades == 1).sum(axis=0)], axis=1)
        measured = compute_measures(grades, bootstrap=200)
        assert measured.fleiss.value == pytest.approx(fleiss_by_hand(counts), abs=1e-12)
        assert (measured.fleiss.n, measured.fleiss_votes) == (40, 3)
        assert measured.fleiss.low < measured.fleiss.value < measured.fleiss.high


def test_of_several_numbers_of_votes_fleiss_kappa_takes_the_most_frequent():
    grades = np.array([[1, 1, 0, 0, 1, 1], [1, 0, 0, _, _, 1], [_, _, 1, 1, 1, 1]])
    measured = compute_measures(grades)
    assert (measured.fleiss_votes, measured.fleiss.n) == (2, 4)
    counts = [[0, 2], [1, 1], [1, 1], [0, 2]]
    assert measured.fleiss.value == pytest.approx(fleiss_by_hand(counts))
    tied = compute_measures(np.array([[1, 1, 0], [0, 1, 0], [_, 1, _], [_, _, 1]])[:, [0, 1]])
    assert tied.fleiss_votes == 3, "of two that are equally frequent the larger"


KRIPPENDORFF_WIKIPEDIA = [
    [_, _, _, _, _, 3, 4, 1, 2, 1, 1, 3, 3, _, 3],
    [1, _, 2, 1, 3, 3, 4, 3, _, _, _, _, _, _, _],
    [_, _, 2, 1, 3, 4, 4, _, 2, 1, 1, 3, 3, _, 4],
]
KRIPPENDORFF_2011 = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]


@pytest.mark.parametrize(
    ("grades", "nominal", "ordinal", "interval", "n"),
    [
        (KRIPPENDORFF_WIKIPEDIA, 0.691358024691358, 0.8067214199413153, 0.8108448928121059, 12),
        (KRIPPENDORFF_2011, 904 / 1216, 0.8153875037548814, 0.8491071428571428, 11),
        ([[1, 1, 2], [1, 1, _], [_, 1, 2]], 1.0, 1.0, 1.0, 3),  # a missing grade is no grade of its own
    ],
)
def test_krippendorffs_alpha_of_published_tables(grades, nominal, ordinal, interval, n):
    measured = compute_measures(np.array(grades))
    values = (measured.alpha_nominal.value, measured.alpha_ordinal.value, measured.alpha_interval.value)
    assert values == pytest.approx((nominal, ordinal, interval), abs=1e-12) and measured.alpha_nominal.n == n


def test_what_cannot_be_measured_is_undefined_with_a_reason():
    measured = compute_measures(np.array([[1, 1, 1], [1, 1, 1]]), bootstrap=20)
    pair = measured.pairwise[0]
    for statistic in (pair.kappa, pair.kappa_linear, measured.fleiss, measured.alpha_nominal, measured.alpha_interval):
        assert (statistic.value, statistic.low, statistic.high, statistic.n) == (None, None, None, 3)
        assert statistic.reason == ONE_GRADE
    assert pair.percent.value == 1.0
    measured = compute_measures(np.array([[0, 1, _, _], [_, _, 1, 0]]))
    pair = measured.pairwise[0]
    assert (pair.n, pair.kappa.value, pair.kappa.reason, pair.percent.reason) == (0, None, NO_ITEM, NO_ITEM)
    assert measured.fleiss.reason == measured.alpha_ordinal.reason == NO_DOUBLE
    for grades in (np.zeros((0, 0), int), np.array([[0, 1, 1]])):
        measured = compute_measures(grades, bootstrap=5)
        assert measured.pairwise == () and measured.fleiss.reason == measured.alpha_nominal.reason == ONE_ASSESSOR
    grades = np.zeros((2, 30), int)
    grades[0, 0] = 1
    kappa = compute_measures(grades, bootstrap=300).pairwise[0].kappa
    assert kappa.value == pytest.approx(0.0) and kappa.low is None, "most resamples are undefined"


def test_each_assessor_stands_against_the_majority_of_the_others():
    grades = np.array([[1, 1, 0, 0, 1], [1, 1, 0, 1, 0], [1, 0, 0, 1, _]])
    alice = compute_measures(grades).majority[0]
    # The others agree on items 0, 2, 3; they tie on item 1; on item 4 only one of them spoke.
    assert alice.n == 4
    assert alice.percent.value == pytest.approx(2 / 4)


matrices = st.integers(2, 5).flatmap(
    lambda grades: st.lists(st.tuples(st.integers(0, grades - 1), st.integers(0, grades - 1)), min_size=1, max_size=60)
)


@given(matrices)
def test_cohens_kappa_equals_scikit_learns(cells):
    first, second = np.array(cells).T
    pair = compute_measures(np.array([first, second])).pairwise[0]
    labels = list(range(max(max(first), max(second), 1) + 1))
    for weights, ours in ((None, pair.kappa), ("linear", pair.kappa_linear), ("quadratic", pair.kappa_quadratic)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = cohen_kappa_score(first, second, labels=labels, weights=weights)
        if np.isnan(theirs):
            assert ours.value is None
        else:
            assert ours.value == pytest.approx(theirs, abs=1e-9)


@given(st.lists(st.lists(st.integers(-1, 3), min_size=3, max_size=3), min_size=2, max_size=30), st.randoms())
def test_the_order_of_items_and_repeated_items_as_patterns_change_nothing(rows, random):
    shuffled = random.sample(rows, len(rows))
    assert compute_measures(np.array(rows).T) == compute_measures(np.array(shuffled).T)


def test_resamples_have_the_size_of_the_data_in_both_ways_of_drawing():
    for counts in (np.ones(50, int), np.array([4000, 300, 700])):
        weights = np.concatenate(list(draw_resamples(counts, 40, seed=1)))
        assert weights.shape == (40, len(counts))
        assert (weights.sum(axis=1) == counts.sum()).all()
    assert abs(weights[:, 0].mean() - 4000) < 30


def test_intervals_hold_the_value_and_repeat_with_the_seed():
    random = np.random.default_rng(3)
    truth = random.integers(0, 2, 300)
    grades = np.where(random.random((4, 300)) < 0.3, random.integers(0, 2, (4, 300)), truth)
    measured = compute_measures(grades, bootstrap=400, seed=7)
    for statistic in (measured.pairwise[0].kappa, measured.fleiss, measured.alpha_nominal, measured.majority[1].kappa):
        assert statistic.low < statistic.value < statistic.high
        assert 0.05 < statistic.high - statistic.low < 0.35
    assert measured == compute_measures(grades, bootstrap=400, seed=7)
    assert measured.fleiss.low != compute_measures(grades, bootstrap=400, seed=8).fleiss.low


def test_the_bootstrap_interval_is_that_of_a_plain_loop():
    random = np.random.default_rng(5)
    first = random.integers(0, 3, 200)
    second = np.where(random.random(200) < 0.4, random.integers(0, 3, 200), first)
    ours = compute_measures(np.array([first, second]), bootstrap=2000).pairwise[0].kappa_quadratic
    draws = [random.integers(0, 200, 200) for _again in range(600)]
    loop = [cohen_kappa_score(first[d], second[d], labels=[0, 1, 2], weights="quadratic") for d in draws]
    low, high = np.percentile(loop, [2.5, 97.5])
    assert ours.low == pytest.approx(low, abs=0.03)
    assert ours.high == pytest.approx(high, abs=0.03)


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=2, max_size=30))
def test_assessors_who_graded_everything_measure_as_they_do_beside_one_who_did_not(rows):
    whole = np.array(rows).T
    first = compute_measures(whole).pairwise[0]
    beside = np.hstack([whole, np.full((3, 1), -1)])
    beside[2, -1] = 0
    assert compute_measures(beside).pairwise[0] == first
