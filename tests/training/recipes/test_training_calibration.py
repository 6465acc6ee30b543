"""Platt's fit and the threshold, both on the dev split; and what is said when it is too small."""

import math

import numpy as np
import pytest

from training.recipes.calibration import Calibration, best_margin, fit_calibration, fit_platt


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


def test_the_threshold_separates_and_is_told_on_both_scales():
    margins = [5.0 + place / 10 for place in range(10)] + [3.0 - place / 10 for place in range(30)]
    found = fit_calibration(margins, [1] * 10 + [0] * 30)
    assert found.reason == "" and (found.positives, found.negatives) == (10, 30)
    assert found.threshold_margin == pytest.approx(4.0)
    assert found.threshold == pytest.approx(found.probability(4.0))


def test_a_dev_split_of_three_positives_is_too_small_and_says_so():
    found = fit_calibration([1.0, 2.0, 3.0] + [-1.0] * 40, [1, 1, 1] + [0] * 40)
    assert (found.a, found.b, found.threshold, found.threshold_margin) == (1.0, 0.0, 0.5, 0.0)
    assert "3 relevant and 40 not" in found.reason


def test_a_model_that_ranks_the_wrong_way_round_is_not_calibrated():
    found = fit_calibration([-2.0, -1.5] * 10 + [2.0, 1.5] * 10, [1] * 20 + [0] * 20)
    assert "mean more relevant" in found.reason and found.a == 1.0


def test_rows_without_a_label_are_left_out():
    assert fit_calibration([1.0, 2.0], [None, 1]) == Calibration(positives=1, reason=fit_calibration([2.0], [1]).reason)


def test_of_equal_thresholds_the_nearest_to_zero_is_taken():
    assert best_margin(np.array([-4.0, -2.0, 6.0]), np.array([0.0, 0.0, 1.0])) == 2.0
