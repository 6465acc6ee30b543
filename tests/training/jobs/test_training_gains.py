"""Whether training helped: the paired test against known values, and the sentence that pages show."""

import numpy as np
import pytest

from training.jobs.significance import compare_models, gain_verdict, randomisation_test


def test_the_exact_test_counts_signs():
    # All five differences point up: 2 of the 32 sign patterns are as extreme.
    assert randomisation_test(np.array([0.1, 0.2, 0.3, 0.4, 0.5])) == 2 / 32


def test_many_queries_agree_with_a_permutation_of_scipy():
    from scipy.stats import permutation_test

    differences = np.random.default_rng(3).normal(0.05, 0.2, 60)
    theirs = permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(0)
    ).pvalue
    assert randomisation_test(differences) == pytest.approx(theirs, abs=0.01)


def test_equal_models_have_p_one():
    assert randomisation_test(np.zeros(30)) == 1.0


@pytest.mark.slow
def test_false_alarms_come_at_their_level():
    draw = np.random.default_rng(11)
    alarms = [randomisation_test(draw.normal(0, 1, 12)) < 0.05 for _ in range(300)]
    assert np.mean(alarms) == pytest.approx(0.05, abs=0.03)


def test_the_verdict_says_gain_loss_or_not_shown():
    base = {f"q{place}": 0.4 for place in range(40)}
    better = compare_models(base, {query: 0.6 for query in base})
    assert better["shown"] and better["difference"] == pytest.approx(0.2)
    assert better["words"] == "gain: nDCG@10 +0.200 over 40 queries, p < 0.0001"
    worse = compare_models(base, {query: 0.3 for query in base})
    assert not worse["shown"] and worse["words"].startswith("worse than its base: nDCG@10 -0.100")
    assert gain_verdict("nDCG@10", 0.01, 0.4, 30) == "no gain shown: p = 0.4 (nDCG@10 +0.010 over 30 queries)"


def test_too_few_queries_show_nothing():
    few = compare_models({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 1.0})
    assert not few["shown"] and few["words"] == "no gain shown: 2 queries are too few to test (nDCG@10 +1.000)"
    assert "not measured" in compare_models({}, {"a": 1.0})["words"]
