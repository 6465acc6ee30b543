"""Dawid and Skene's estimate of the truth and of each assessor's errors, by EM. Pure numpy.

A. P. Dawid, A. M. Skene: Maximum likelihood estimation of observer error-rates using the EM
algorithm. Journal of the Royal Statistical Society, Series C 28 (1979). The likelihood leaves out
the multinomial coefficients, as theirs does.

Counts are sparse, items x (assessors x classes): a thousand people who graded sixty items each take what they said.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.agreement.resampling import MISSING

Floats = NDArray[np.float64]
# A scipy sparse array: items x (assessors x classes), how often an assessor gave an item a grade.
Counts = Any
STARTS = 5
TOLERANCE = 1e-9
MOST = 2_000
# A class with a share below this, and below a third of its share of the grades, is ignored.
TOO_SMALL = 0.01


@dataclass(frozen=True, slots=True)
class Solution:
    """The solution of the 1979 paper's start; another start's where that one has collapsed."""

    classes: tuple[int, ...]  # Grades, in the order of every axis below.
    priors: Floats  # Share of each class among the items.
    confusion: Floats  # assessors x true class x grade given, rows sum to 1.
    posterior: Floats  # items x classes.
    log_likelihood: float
    iterations: int
    converged: bool
    starts: int  # How many were made.
    # The highest log-likelihood of all starts: above this one's, the likelihood has several maxima.
    highest: float
    collapsed: str  # Why it must not be used; empty where it may.

    @property
    def labels(self) -> NDArray[np.int64]:
        """The most probable grade of each item."""
        labels: NDArray[np.int64] = np.array(self.classes, dtype=np.int64)[self.posterior.argmax(axis=1)]
        return labels

    @property
    def accuracies(self) -> tuple[Floats, Floats]:
        """The estimated share of right grades of each assessor, and of each in each class."""
        rates = np.einsum("acc->ac", self.confusion)
        # Over the classes by their estimated shares, so a rare class weighs little.
        return rates @ self.priors, rates


def sparse_counts(grades: NDArray[np.integer]) -> tuple[tuple[int, ...], Counts]:
    """Return grades (assessors x items, MISSING where none) as classes and sparse counts."""
    from scipy.sparse import csr_array

    classes = tuple(int(one) for one in np.unique(grades[grades != MISSING]))
    assessor, item = np.nonzero(grades != MISSING)
    column = assessor * len(classes) + np.searchsorted(np.array(classes, dtype=np.int64), grades[assessor, item])
    shape = (grades.shape[1], len(grades) * len(classes))
    return classes, csr_array((np.ones(len(item)), (item, column)), shape=shape)


def dawid_skene(
    counts: Counts, classes: tuple[int, ...], *, weights: Floats | None = None, starts: int = STARTS, seed: int = 0
) -> Solution | None:
    """Fit `counts` (as `sparse_counts` gives them, or dense: items x assessors x classes).
    `weights`: how many equal items a row stands for. None where there are no grades, or fewer than
    two classes.
    """
    if len(classes) < 2 or not counts.sum():
        return None
    from scipy.sparse import csr_array

    if isinstance(counts, np.ndarray):
        counts = csr_array(counts.reshape(len(counts), -1))
    items = counts.shape[0]
    weights = np.ones(items) if weights is None else weights
    shares = _normalise_shares(votes_of(counts, len(classes)), 1)
    random = np.random.default_rng(seed)
    # The first start is the 1979 paper's: each item's share of its grades. The others disturb it. Its solution is kept
    # although another start may climb higher (on the paper's own table one reaches -191.57 where theirs ends at
    # -192.89): the likelihood rewards solutions that merge or swap grades. `highest` says so.
    runs = [_run_em(counts, weights, shares)]
    # Half way to a random share: far enough to leave a local maximum, and near enough to keep the classes' names.
    for _start in range(max(0, starts - 1)):
        disturbed = 0.5 * shares + 0.5 * random.dirichlet(np.ones(len(classes)), size=items)
        runs.append(_run_em(counts, weights, disturbed))
    highest = max(likelihood for _, _, _, likelihood, _, _ in runs)
    reasons = [why_collapsed(counts, weights, classes, *shares) for *shares, _, _, _ in runs]
    solutions = [Solution(classes, *run, len(runs), highest, why) for run, why in zip(runs, reasons, strict=True)]
    return next((one for one in solutions if not one.collapsed), solutions[0])


def _run_em(counts: Counts, weights: Floats, posterior: Floats) -> tuple[Floats, Floats, Floats, float, int, bool]:
    """Run EM from a first guess of the posterior: M step, E step, until the likelihood is still."""
    size = posterior.shape[1]
    assessors = counts.shape[1] // size
    by_column = counts.T.tocsr()
    before, iterations, converged = -np.inf, 0, False
    while not converged and iterations < MOST:
        iterations += 1
        weighted = posterior * weights[:, None]
        priors = weighted.sum(axis=0) / weights.sum()
        # The M step, as one sparse product: sums over items of what each assessor gave, weighted by the posterior.
        confusion = _normalise_shares((by_column @ weighted).T.reshape(size, assessors, size), 2)
        joint = counts @ _floored_log(confusion).reshape(size, assessors * size).T + _floored_log(priors)
        # The largest exponent is taken out before exp, or items with many grades underflow to 0.
        most = joint.max(axis=1, keepdims=True)
        likely = np.exp(joint - most)
        likelihood = float((weights * (np.log(likely.sum(axis=1)) + most[:, 0])).sum())
        posterior = _normalise_shares(likely, 1)
        converged = abs(likelihood - before) <= TOLERANCE * (1 + abs(likelihood))
        before = likelihood
    return priors, confusion.transpose(1, 0, 2), posterior, before, iterations, converged


def _floored_log(values: Floats) -> Floats:
    return np.log(np.maximum(values, 1e-300))


def _normalise_shares(values: Floats, axis: int) -> Floats:
    """Return shares along an axis; equal ones where there is nothing."""
    total = values.sum(axis=axis, keepdims=True)
    return np.where(total > 0, values / np.where(total > 0, total, 1), 1 / values.shape[axis])


def why_collapsed(
    counts: Counts, weights: Floats, classes: tuple[int, ...], priors: Floats, confusion: Floats, posterior: Floats
) -> str:
    """Say why a solution (that ignores a used class, swaps classes, or explains less) must not be used; else ""."""
    votes = votes_of(counts, len(classes))
    graded = (votes * weights[:, None]).sum(axis=0)
    shares = graded / graded.sum()
    # A class that EM has emptied was merged into another one, and its pairs carry wrong grades.
    for grade, prior, share in zip(classes, priors, shares, strict=True):
        if prior < min(TOO_SMALL, share / 3):
            words = _("grade %(grade)s makes up %(share)s of the grades given but %(prior)s of this solution")
            return words % {"grade": grade, "share": f"{share:.1%}", "prior": f"{prior:.1%}"}
    # Assessors count by what they graded, so that one with three grades cannot name a class.
    volume = (counts.T @ weights).reshape(-1, len(classes)).sum(axis=1)
    typical = np.einsum("atg,a->tg", confusion, volume) / volume.sum()
    # Swapped classes: most assessors would be "wrong" on each pair of the class.
    for place, grade in enumerate(classes):
        if (given := int(typical[place].argmax())) != place:
            words = _("assessors most often gave grade %(given)s to the pairs that it grades %(grade)s")
            return words % {"grade": grade, "given": classes[given]}
    majority = votes.argmax(axis=1)
    alone = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1
    mine = _agreeing_share(votes, weights, posterior.argmax(axis=1), alone)
    theirs = _agreeing_share(votes, weights, majority, alone)
    # A tenth less than the majority is more than a better aggregate differs by.
    if mine < theirs - 0.1:
        words = _("%(mine)s of the grades agree with it, %(theirs)s with the majority")
        return words % {"mine": f"{mine:.0%}", "theirs": f"{theirs:.0%}"}
    return ""


def votes_of(counts: Counts, classes: int) -> Floats:
    """Count how many gave an item each grade: items x classes."""
    return np.asarray(counts @ np.tile(np.eye(classes), (counts.shape[1] // classes, 1)))


def _agreeing_share(votes: Floats, weights: Floats, labels: NDArray[np.intp], where: NDArray[np.bool_]) -> float:
    """Return the share of the grades on some items that equal the items' labels."""
    equal = votes[np.arange(len(votes)), labels]
    mass = weights * where
    return float((equal * mass).sum() / max((votes.sum(axis=1) * mass).sum(), 1e-300))
