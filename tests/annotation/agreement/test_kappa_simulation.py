"""Intervals of kappa cover the truth at their level, and early-stopped votes do not bend it (check 14, M4)."""

from statistics import NormalDist

import numpy as np
import pytest

from annotation.agreement.groups import group_agreement
from annotation.agreement.measures import compute_measures
from annotation.agreement.resampling import MISSING
from judges.domain.ensemble import drawn_first, pair_seed

RIGHT = 0.9
SHARE = 0.4
SIMULATIONS = 300
PAIRS = 150


def panel(random, pairs, judges=5):
    """Votes of judges that are right nine times of ten, independently."""
    truth = random.random(pairs) < SHARE
    wrong = random.random((judges, pairs)) >= RIGHT
    return np.where(wrong, ~truth, truth).astype(np.int64)


def true_kappa():
    """Of two such judges over all pairs, in closed form."""
    yes = SHARE * RIGHT + (1 - SHARE) * (1 - RIGHT)
    observed, chance = RIGHT**2 + (1 - RIGHT) ** 2, yes**2 + (1 - yes) ** 2
    return (observed - chance) / (1 - chance)


def stopped_early(votes):
    """The votes of an early-stopping panel that enter: those drawn first; MISSING else."""
    entering = np.full_like(votes, MISSING)
    for pair in range(votes.shape[1]):
        first = list(drawn_first(5, True, pair_seed(0, pair)))
        entering[first, pair] = votes[first, pair]
    return entering


def least(level=0.95, n=SIMULATIONS):
    """Covering less often than this has a chance of one in a thousand for an interval that keeps its level."""
    return level - NormalDist().inv_cdf(0.999) * (level * (1 - level) / n) ** 0.5


@pytest.mark.parametrize(
    "statistic",
    [
        lambda votes, seed: compute_measures(votes[:2], bootstrap=400, seed=seed).pairwise[0].kappa,
        lambda votes, seed: group_agreement(votes, bootstrap=400, seed=seed).kappa,
    ],
    ids=["Cohen's", "the panel's"],
)
def test_intervals_of_kappa_cover_the_truth_at_their_level(statistic):
    truth, inside = true_kappa(), 0
    for seed in range(SIMULATIONS):
        found = statistic(panel(np.random.default_rng(seed), PAIRS), seed)
        inside += found.low <= truth <= found.high
    assert least() <= inside / SIMULATIONS <= 2 * 0.95 - least()


def test_early_stopped_votes_neither_bend_kappa_nor_its_interval():
    """Three of the five judges are drawn for each pair, and only their votes enter: as the collection's union does."""
    truth, values, inside = true_kappa(), [], 0
    for seed in range(SIMULATIONS // 2):
        entering = stopped_early(panel(np.random.default_rng(seed), PAIRS))
        found = group_agreement(entering, bootstrap=300, seed=seed).kappa
        values.append(found.value)
        inside += found.low <= truth <= found.high
    error = np.std(values) / len(values) ** 0.5
    assert np.mean(values) == pytest.approx(truth, abs=3 * error + 0.003)
    assert inside / len(values) >= least(n=len(values))


def test_the_groups_kappa_is_krippendorffs_alpha():
    random = np.random.default_rng(4)
    votes = panel(random, 200)
    votes[random.random(votes.shape) < 0.3] = MISSING
    found, reference = group_agreement(votes, bootstrap=0), compute_measures(votes)
    assert found.kappa.value == pytest.approx(reference.alpha_nominal.value)
    assert found.pairs == reference.alpha_nominal.n
