"""Labels made of all grades: the majority, Dawid-Skene, or the resolved labels, each with its posterior.

The grades are those whose agreement is measured: judges' votes, people and imports (annotation.agreement).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.agreement.aggregates import Second, fit_matrix
from annotation.agreement.grade_matrix import choose_assessors, known_assessors, load_grade_matrix
from annotation.agreement.resampling import MISSING
from corpus.errors import BadOption
from corpus.models import Collection, Label

# Decimals of a posterior: those after them differ between machines, and the same rows must give the same file.
PLACES = 6


@dataclass(frozen=True, slots=True)
class AggregatedLabels:
    """A label for each pair, with Dawid-Skene's probability of its grade; None if unknown."""

    pairs: list[int]
    grades: list[int]
    origins: list[str]
    posteriors: list[float | None]
    ties: int = 0  # Pairs that were graded and have no majority.
    described: dict[str, Any] = field(default_factory=dict)  # What the manifest says of it.

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Return the columns as the statements of exports take them."""
        return {
            "label_pairs": self.pairs,
            "label_grades": self.grades,
            "label_origins": self.origins,
            "label_posteriors": self.posteriors,
        }


def aggregate_labels(collection: Collection, how: str, assessors: Sequence[str] = ()) -> AggregatedLabels:
    """Make the labels of a collection anew. `how`: majority, dawid-skene or resolved.

    `assessors`: whose grades, by their names, and `people` or `judges` for all of them; none:
    everybody's. Raises BadInput where nobody has such a name or graded anything, and for
    Dawid-Skene where it cannot be fitted or has collapsed.
    """
    kinds = {kind: kind in assessors for kind in ("people", "judges")}
    names = [name for name in assessors if name not in kinds]
    matrix = load_grade_matrix(collection, choose_assessors(known_assessors(collection), names=names, **kinds))
    found = fit_matrix(matrix, tuple(one.name for one in matrix.assessors))
    usable = found.solution is not None and not found.solution.collapsed
    why = found.reason or (found.solution.collapsed if found.solution is not None else "")
    graded = int((matrix.grades != MISSING).any(axis=0).sum())
    described: dict[str, Any] = {
        "assessors": list(found.names),
        "graded": graded,
        "ties": found.ties,
        "posterior": None if usable else why,
    }
    if how == "resolved":
        return _resolved_labels(collection, found, usable, described)
    if how == "dawid-skene" and not usable:
        words = _("Dawid-Skene has no labels for %(name)s: %(why)s. Use majority or resolved.")
        raise BadOption("aggregate", words % {"name": collection.name, "why": why})
    pairs, grades = (
        (found.pairs, found.labels) if how == "dawid-skene" else _count_majority(matrix.pairs, matrix.grades)
    )
    if not len(pairs):
        words = _("Nobody has graded a pair of %(name)s yet.")
        raise BadOption("aggregate", words % {"name": collection.name})
    # ADR 0016: the posterior is always Dawid-Skene's, whichever way the grade was chosen, so the
    # column has one meaning.
    posteriors = found.posterior_of(pairs, grades) if usable else np.full(len(pairs), np.nan)
    ties = graded - len(pairs)
    described["ties"] = ties
    origins = [how] * len(pairs)
    return AggregatedLabels(pairs.tolist(), grades.tolist(), origins, _rounded(posteriors), ties, described)


def _count_majority(pairs: NDArray[np.int64], grades: NDArray[np.int16]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of which one grade was given more often than any other, and that grade."""
    classes = np.unique(grades[grades != MISSING])
    votes = np.stack([(grades == one).sum(axis=0) for one in classes]) if len(classes) else np.zeros((1, len(pairs)))
    most = votes.max(axis=0)
    # A tie is nobody's majority, and gets no label.
    alone = (most > 0) & ((votes == most).sum(axis=0) == 1)
    return pairs[alone], classes[votes.argmax(axis=0)[alone]].astype(np.int64)


def _resolved_labels(
    collection: Collection, found: Second, usable: bool, described: dict[str, Any]
) -> AggregatedLabels:
    rows = Label.objects.filter(pair__collection=collection, aspect=None).order_by("pair_id")
    columns = list(zip(*rows.values_list("pair_id", "grade", "origin"), strict=True)) or [(), (), ()]
    pairs, grades, origins = map(list, columns)
    posteriors = np.full(len(pairs), np.nan)
    if usable:
        posteriors = found.posterior_of(np.array(pairs, dtype=np.int64), np.array(grades, dtype=np.int64))
    return AggregatedLabels(pairs, grades, origins, _rounded(posteriors), 0, described)


def _rounded(posteriors: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(one) else round(float(one), PLACES) for one in posteriors]
