"""Measures on the dev split, the checkpoint they choose, Platt's fit, the threshold: by hand and by the libraries."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.recipes.calibration import Calibration, best_margin, fit_calibration, fit_platt
from training.recipes.data import Example
from training.recipes.metrics import (
    choose_checkpoint,
    held_out_queries,
    measure_dev_split,
    ndcg_by_query,
    pearson_correlation,
    roc_auc,
    sigmoid,
)


def examples(labels, teacher=None, queries=None):
    """Rows of the dev split with ids d0, d1, ..."""
    scores, names = teacher or [None] * len(labels), queries or ["q"] * len(labels)
    return [
        Example("", "", label=label, teacher=score, query_id=name, doc_id=f"d{place:02}")
        for place, (label, score, name) in enumerate(zip(labels, scores, names, strict=True))
    ]


def rows(margins, labels, teacher=None, queries=None):
    """measure() with one query and ids d0, d1, ..."""
    return measure_dev_split(margins, examples(labels, teacher, queries))


def test_a_hand_worked_dev_split():
    logit = math.log(3)  # sigmoid = 0.75
    found = rows([logit, -logit, logit, -logit], [1, 0, 0, 1], [1.0, 0.5, 0.5, 0.0])
    assert found["label_pearson"] == pytest.approx(0)
    assert found["teacher_pearson"] == pytest.approx(1 / math.sqrt(2))  # cov 0.0625, sd 0.25 and sqrt(0.125)
    assert found["auc"] == 0.5  # one right, one wrong, two ties of one half each
    assert found["accuracy"] == 0.5
    # d2 and d0 tie at the top, the greater id first: 0 1 then d3, d1: 1 0
    assert found["ndcg@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(4)) / (1 + 1 / math.log2(3)))
    assert (found["rows"], found["queries"], found["reasons"]) == (4, 1, {})


def test_undefined_measures_are_null_and_say_why():
    found = rows([1.0, 2.0], [1, 1])
    assert found["auc"] is None and "same" in found["reasons"]["auc"]
    assert found["label_pearson"] is None and "same value" in found["reasons"]["label_pearson"]
    assert found["teacher_pearson"] is None and "fewer than two" in found["reasons"]["teacher_pearson"]
    assert found["accuracy"] == 1.0
    empty = rows([], [])
    assert empty["ndcg@10"] is None and empty["accuracy"] is None
    assert empty["reasons"]["ndcg@10"] == "no query of the dev split has a relevant document"


def test_rows_without_a_label_or_a_relevant_document_and_the_chosen_threshold():
    found = rows([1.0, -1.0, 5.0], [1, 0, None], [0.9, 0.1, 0.5])
    assert found["labelled"] == 2 and found["accuracy"] == 1.0 and found["auc"] == 1.0
    assert found["teacher_pearson"] != pytest.approx(1.0)
    found = measure_dev_split([3.0, 2.0, 1.0], examples([1, 0, 0]), threshold_margin=2.5)
    assert found["accuracy"] == pytest.approx(1 / 3) and found["accuracy_at_threshold"] == 1.0
    values = ndcg_by_query([1.0, 2.0], examples([1, 0], queries=["a", "b"]))
    assert values == {"a": 1.0}


@settings(deadline=None)  # the first example pays for the import of scikit-learn
@given(st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=40))
def test_measures_equal_the_libraries(pairs):
    from scipy.stats import pearsonr
    from sklearn.metrics import ndcg_score, roc_auc_score

    margins = np.array([float(margin) for margin, _ in pairs])
    truth = np.array([float(label) for _, label in pairs])
    if 0 < truth.sum() < len(truth):
        assert roc_auc(margins, truth) == pytest.approx(roc_auc_score(truth, margins))
        distinct = margins + np.arange(len(margins)) * 1e-3
        own = ndcg_by_query(distinct.tolist(), examples([int(label) for _, label in pairs]))["q"]
        assert own == pytest.approx(ndcg_score([truth], [distinct], k=10))
        if len(set(margins)) > 1:
            assert pearson_correlation(sigmoid(margins), truth) == pytest.approx(pearsonr(sigmoid(margins), truth)[0])


def test_the_checkpoint_with_the_best_mean_rank_wins_and_loss_has_no_say():
    checkpoints = [
        {"label_pearson": 0.5, "auc": 0.9, "accuracy": 0.7, "loss": 0.1},  # ranks 2, 1, 3 = 2
        {"label_pearson": 0.6, "auc": 0.8, "accuracy": 0.8, "loss": 9.9},  # ranks 1, 2, 1.5 = 1.5
        {"label_pearson": 0.4, "auc": 0.7, "accuracy": 0.8, "loss": 0.2},  # ranks 3, 3, 1.5 = 2.5
    ]
    place, ranks, words = choose_checkpoint(checkpoints)
    assert place == 1 and ranks == [2.0, 1.5, 2.5]
    assert "label_pearson, auc, accuracy" in words


def test_of_equal_checkpoints_the_earlier_wins_and_the_queries_that_choose_count():
    same = {"label_pearson": 0.5, "auc": 0.9, "accuracy": 0.7}
    assert choose_checkpoint([same, dict(same)])[0] == 0
    assert choose_checkpoint([same | {"auc": None}, same])[0] == 1
    nothing = {"label_pearson": None, "auc": None, "accuracy": None}
    assert choose_checkpoint([nothing, nothing])[0] == 1
    with pytest.raises(ValueError, match="no checkpoint"):
        choose_checkpoint([])
    good, bad = ({"label_pearson": value, "auc": value, "accuracy": value} for value in (0.9, 0.1))
    assert choose_checkpoint([good | {"choosing": bad}, bad | {"choosing": good}])[0] == 1


def test_half_of_the_queries_with_a_relevant_document_have_no_say_in_the_choice():
    queries = [f"q{place}" for place in range(30) for _ in range(2)]
    labels = [place % 2 if place < 40 else 0 for place in range(60)]
    found = examples(labels, queries=queries)
    apart = held_out_queries(found)
    assert len(apart) == 10 and apart <= {f"q{place}" for place in range(20)}
    assert held_out_queries(found[::-1]) == apart
    assert held_out_queries(found[:18]) == set()


@pytest.mark.parametrize("lost", [math.nan, math.inf])
def test_a_model_that_diverged_has_no_measure_and_is_not_chosen(lost):
    healthy = rows([1.0, -1.0, 0.5], [1, 0, 1])
    diverged = rows([1.0, lost, 0.5], [1, 0, 1])
    assert diverged["auc"] is diverged["accuracy"] is diverged["label_pearson"] is None
    assert diverged["reasons"]["auc"] == "the model's scores are not all finite numbers"
    assert choose_checkpoint([diverged, healthy, diverged])[0] == 1


def test_platt_equals_logistic_regression_on_smoothed_targets():
    from scipy.optimize import minimize

    draw = np.random.default_rng(1)
    margins = draw.normal(2, 5, 60)
    truth = (draw.random(60) < 1 / (1 + np.exp(-margins + 2))).astype(float)
    n = truth.sum()
    targets = np.where(truth == 1, (n + 1) / (n + 2), 1 / (60 - n + 2))

    def loss(line):
        value = line[0] * margins + line[1]
        return np.sum(np.logaddexp(0, value) - targets * value)

    best = minimize(loss, [1.0, 0.0], method="BFGS", options={"gtol": 1e-9})
    assert fit_platt(margins, truth) == pytest.approx(tuple(best.x), abs=1e-4)


def test_separable_labels_still_give_a_finite_line():
    margins = np.array([-3.0] * 12 + [4.0] * 12)
    a, b = fit_platt(margins, (margins > 0).astype(float))
    # Platt's targets are 13/14 and 1/14: the line goes through log 13 and -log 13.
    assert a * 4 + b == pytest.approx(math.log(13), abs=1e-6)
    assert a * -3 + b == pytest.approx(-math.log(13), abs=1e-6)


def test_the_threshold_separates_is_told_on_both_scales_and_of_equal_ones_the_nearest_to_zero():
    margins = [5.0 + place / 10 for place in range(10)] + [3.0 - place / 10 for place in range(30)]
    found = fit_calibration(margins, [1] * 10 + [0] * 30)
    assert found.reason == "" and (found.positives, found.negatives) == (10, 30)
    assert found.threshold_margin == pytest.approx(4.0)
    assert found.threshold == pytest.approx(found.probability(4.0))
    assert best_margin(np.array([-4.0, -2.0, 6.0]), np.array([0.0, 0.0, 1.0])) == 2.0


def test_too_few_rows_and_a_model_that_ranks_the_wrong_way_round_are_not_calibrated():
    found = fit_calibration([1.0, 2.0, 3.0] + [-1.0] * 40, [1, 1, 1] + [0] * 40)
    assert (found.a, found.b, found.threshold, found.threshold_margin) == (1.0, 0.0, 0.5, 0.0)
    assert "3 relevant and 40 not" in found.reason
    found = fit_calibration([-2.0, -1.5] * 10 + [2.0, 1.5] * 10, [1] * 20 + [0] * 20)
    assert "mean more relevant" in found.reason and found.a == 1.0
    assert fit_calibration([1.0, 2.0], [None, 1]) == Calibration(positives=1, reason=fit_calibration([2.0], [1]).reason)
