"""Independence of votes: copies, correlated errors, effective number of votes. Pure."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.resampling import MISSING
from annotation.quality.panels.quality import Groups, ReferenceGrades, Votes

# Kappa from which two candidates may be copies. Frontier models of different makers are below it (Prism 4.3: 0.82).
NEAR = 0.85
SHARED = 2 / 3  # Copies share at least this part of the pairs on which either errs.
FEW = 5  # Fewer errors than this prove nothing, unless all answers are equal.

CandidateMatrix = NDArray[np.float64]  # Candidates x candidates; NaN where undefined.


def group_copies(
    votes: Votes, reference: ReferenceGrades, kappas: CandidateMatrix, alike: Groups = ()
) -> list[tuple[int, ...]]:
    """Group candidates whose votes are copies of each other; each candidate is in exactly one group.

    Two good judges agree too, so nearly equal answers are not enough: copies err on the same pairs. An
    answer for a pair without gold is wrong if the majority of all others contradicts it. `alike`:
    candidates that are the same model with the same parameters, which are copies whatever they answer.
    """
    groups = [{position} for position in range(len(votes))]
    for a, b in combinations(range(len(votes)), 2):
        is_same_model = any(a in group and b in group for group in alike)
        # Joined groups are the same object, so that a copy of a copy is in the group too.
        if groups[a] is not groups[b] and (is_same_model or _are_copies(votes, reference, kappas, a, b)):
            groups[a] |= groups[b]
            for position in groups[b]:
                groups[position] = groups[a]
    return [tuple(sorted(group)) for position, group in enumerate(groups) if position == min(group)]


def _are_copies(votes: Votes, reference: ReferenceGrades, kappas: CandidateMatrix, a: int, b: int) -> bool:
    if (votes[a] == votes[b]).all():
        return True
    # Negated, so that an undefined kappa (NaN) counts as below.
    if not kappas[a, b] >= NEAR:
        return False
    # The correct answer is gold, or else the majority of the others.
    others = len(votes) - 2
    yes = votes.sum(axis=0, dtype=np.int64) - votes[a] - votes[b]
    majority = np.where(2 * yes == others, MISSING, 2 * yes > others)
    answer = np.where(reference == MISSING, majority, reference)
    has_answer, a_errs, b_errs = answer != MISSING, votes[a] != answer, votes[b] != answer
    errors, shared_errors = int((a_errs | b_errs)[has_answer].sum()), int((a_errs & b_errs)[has_answer].sum())
    return errors >= FEW and shared_errors >= SHARED * errors


def error_correlations(votes: Votes, reference: ReferenceGrades) -> CandidateMatrix:
    """Return Pearson's correlation (phi) of errors on gold between candidates; NaN where one makes no errors."""
    has_gold = reference != MISSING
    if not has_gold.any():
        return np.full((len(votes), len(votes)), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations: CandidateMatrix = np.corrcoef(votes[:, has_gold] != reference[has_gold])
    return correlations


def effective_votes(members: int, correlation: float | None) -> float | None:
    """Return the effective number of votes, n / (1 + (n - 1) r), r the mean correlation of the members' errors.

    By Kish's design effect (Survey Sampling, 1965, 8.2) five votes whose errors always coincide are
    one vote. It is never more than n: a negative r is hardly ever more than chance. None where r is unknown.
    """
    return None if correlation is None else members / (1 + (members - 1) * max(correlation, 0.0))


def mean_between(matrix: CandidateMatrix, members: Sequence[int]) -> float | None:
    """Return the mean of the matrix over pairs of members; None where a value is undefined."""
    values = [float(matrix[a, b]) for a, b in combinations(members, 2)]
    mean = float(np.mean(values)) if values else float("nan")
    return mean if np.isfinite(mean) else None
