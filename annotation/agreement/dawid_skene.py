"""Dawid and Skene's estimate of true labels and of each assessor's error rates, by EM. Pure numpy.

A. P. Dawid, A. M. Skene: Maximum likelihood estimation of observer error-rates using the EM
algorithm. Journal of the Royal Statistical Society, Series C 28 (1979). The likelihood leaves out
the multinomial coefficients, as theirs does.

Counts are a sparse array, items x (assessors x classes), whose memory grows with the number of grades.
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
    """The solution of the 1979 paper's start, or of another start where that one has collapsed."""

    classes: tuple[int, ...]  # Grades, in the order of every axis below.
    priors: Floats  # Share of each class among the items.
    confusion: Floats  # assessors x true class x grade; rows sum to 1.
    posterior: Floats  # items x classes.
    log_likelihood: float
    iterations: int
    converged: bool
    starts: int  # The number of starts.
    # The highest log-likelihood of all starts: if above this one's, the likelihood has several maxima.
    highest: float
    collapsed: str  # Why the solution must not be used; empty where it may.

    @property
    def labels(self) -> NDArray[np.int64]:
        """Return the most probable grade of each item."""
        labels: NDArray[np.int64] = np.array(self.classes, dtype=np.int64)[self.posterior.argmax(axis=1)]
        return labels

    @property
    def accuracies(self) -> tuple[Floats, Floats]:
        """Return the estimated share of right grades of each assessor, overall and in each class."""
        rates = np.einsum("acc->ac", self.confusion)
        # The classes are weighted by their estimated shares.
        return rates @ self.priors, rates


def sparse_counts(grades: NDArray[np.integer]) -> tuple[tuple[int, ...], Counts]:
    """Return the classes and sparse counts of grades (assessors x items, MISSING without a grade)."""
    from scipy.sparse import csr_array

    classes = tuple(int(grade) for grade in np.unique(grades[grades != MISSING]))
    assessor, item = np.nonzero(grades != MISSING)
    column = assessor * len(classes) + np.searchsorted(np.array(classes, dtype=np.int64), grades[assessor, item])
    shape = (grades.shape[1], len(grades) * len(classes))
    return classes, csr_array((np.ones(len(item)), (item, column)), shape=shape)


def dawid_skene(
    counts: Counts, classes: tuple[int, ...], *, weights: Floats | None = None, starts: int = STARTS, seed: int = 0
) -> Solution | None:
    """Fit counts, from `sparse_counts` or dense (items x assessors x classes).

    `weights`: the number of equal items in a row of counts. Returns None without grades or with fewer
    than two classes.
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
    # The first start is the 1979 paper's: the share of each grade on an item. The others disturb it. The solution of
    # the first is used even where another start reaches a higher likelihood (on the paper's own table -191.57, theirs
    # -192.89), because the likelihood rewards solutions that merge or swap grades. `highest` shows that.
    runs = [_run_em(counts, weights, shares)]
    # Half way to a random share: far enough to leave a local maximum, near enough not to swap the classes.
    for _start in range(max(0, starts - 1)):
        disturbed = 0.5 * shares + 0.5 * random.dirichlet(np.ones(len(classes)), size=items)
        runs.append(_run_em(counts, weights, disturbed))
    highest = max(likelihood for _, _, _, likelihood, _, _ in runs)
    reasons = [why_collapsed(counts, weights, classes, *shares) for *shares, _, _, _ in runs]
    solutions = [Solution(classes, *run, len(runs), highest, reason) for run, reason in zip(runs, reasons, strict=True)]
    return next((solution for solution in solutions if not solution.collapsed), solutions[0])


def _run_em(counts: Counts, weights: Floats, posterior: Floats) -> tuple[Floats, Floats, Floats, float, int, bool]:
    """Run EM from an initial posterior until the likelihood converges."""
    size = posterior.shape[1]
    assessors = counts.shape[1] // size
    by_column = counts.T.tocsr()
    last_likelihood, iterations, converged = -np.inf, 0, False
    while not converged and iterations < MOST:
        iterations += 1
        weighted = posterior * weights[:, None]
        priors = weighted.sum(axis=0) / weights.sum()
        # The M step as one sparse product: each assessor's grades weighted by the posterior, summed over items.
        confusion = _normalise_shares((by_column @ weighted).T.reshape(size, assessors, size), 2)
        joint = counts @ _floored_log(confusion).reshape(size, assessors * size).T + _floored_log(priors)
        # The largest exponent is subtracted before exp, or items with many grades would underflow to 0.
        most = joint.max(axis=1, keepdims=True)
        likely = np.exp(joint - most)
        likelihood = float((weights * (np.log(likely.sum(axis=1)) + most[:, 0])).sum())
        posterior = _normalise_shares(likely, 1)
        converged = abs(likelihood - last_likelihood) <= TOLERANCE * (1 + abs(likelihood))
        last_likelihood = likelihood
    return priors, confusion.transpose(1, 0, 2), posterior, last_likelihood, iterations, converged


def _floored_log(values: Floats) -> Floats:
    return np.log(np.maximum(values, 1e-300))


def _normalise_shares(values: Floats, axis: int) -> Floats:
    """Return shares along an axis; equal shares where the sum is 0."""
    total = values.sum(axis=axis, keepdims=True)
    return np.where(total > 0, values / np.where(total > 0, total, 1), 1 / values.shape[axis])


def why_collapsed(
    counts: Counts, weights: Floats, classes: tuple[int, ...], priors: Floats, confusion: Floats, posterior: Floats
) -> str:
    """Return why a solution must not be used: it ignores or swaps classes, or fits the grades badly; else ""."""
    votes = votes_of(counts, len(classes))
    graded = (votes * weights[:, None]).sum(axis=0)
    shares = graded / graded.sum()
    # A class that EM has emptied was merged into another one, so its pairs get wrong grades.
    for grade, prior, share in zip(classes, priors, shares, strict=True):
        if prior < min(TOO_SMALL, share / 3):
            message = _("grade %(grade)s makes up %(share)s of the grades given but %(prior)s of this solution")
            return message % {"grade": grade, "share": f"{share:.1%}", "prior": f"{prior:.1%}"}
    # Assessors are weighted by their number of grades, so that one with three grades decides nothing.
    volume = (counts.T @ weights).reshape(-1, len(classes)).sum(axis=1)
    typical = np.einsum("atg,a->tg", confusion, volume) / volume.sum()
    # Classes are swapped where most assessors would be wrong on the pairs of a class.
    for true_class, grade in enumerate(classes):
        if (typical_class := int(typical[true_class].argmax())) != true_class:
            message = _("assessors most often gave grade %(given)s to the pairs that it grades %(grade)s")
            return message % {"grade": grade, "given": classes[typical_class]}
    majority = votes.argmax(axis=1)
    has_majority = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1
    by_solution = _agreeing_share(votes, weights, posterior.argmax(axis=1), has_majority)
    by_majority = _agreeing_share(votes, weights, majority, has_majority)
    # A good solution agrees with at most a tenth fewer of the grades than the majority.
    if by_solution < by_majority - 0.1:
        message = _("%(mine)s of the grades agree with it, %(theirs)s with the majority")
        return message % {"mine": f"{by_solution:.0%}", "theirs": f"{by_majority:.0%}"}
    return ""


def votes_of(counts: Counts, classes: int) -> Floats:
    """Count the assessors who gave each grade: items x classes."""
    return np.asarray(counts @ np.tile(np.eye(classes), (counts.shape[1] // classes, 1)))


def _agreeing_share(votes: Floats, weights: Floats, labels: NDArray[np.intp], where: NDArray[np.bool_]) -> float:
    """Return the share of the grades on some items that equal the items' labels."""
    equal = votes[np.arange(len(votes)), labels]
    used_weights = weights * where
    return float((equal * used_weights).sum() / max((votes.sum(axis=1) * used_weights).sum(), 1e-300))
