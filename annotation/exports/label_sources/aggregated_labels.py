"""Labels aggregated from all grades: majority, Dawid-Skene, or the resolved labels, each with its posterior.

The grades are those whose agreement is measured: votes of judges, people and imports (annotation.agreement).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from annotation.agreement.aggregates import fit_matrix
from annotation.agreement.grade_matrix import choose_assessors, known_assessors, load_grade_matrix
from annotation.agreement.resampling import MISSING
from corpus.errors import BadOption
from corpus.models import Collection, Label

# Decimals of a posterior: further ones differ between machines, and the same rows must give the same file.
PLACES = 6


@dataclass(frozen=True, slots=True)
class AggregatedLabels:
    """Labels of pairs, each with Dawid-Skene's probability of its grade (None: unknown)."""

    pairs: list[int]
    grades: list[int]
    origins: list[str]
    posteriors: list[float | None]
    ties: int = 0  # Number of graded pairs without a majority.
    described: dict[str, Any] = field(default_factory=dict)  # Description for the manifest.

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Columns for the SQL statements of exports."""
        return {
            "label_pairs": self.pairs,
            "label_grades": self.grades,
            "label_origins": self.origins,
            "label_posteriors": self.posteriors,
        }


def aggregate_labels(collection: Collection, how: str, assessors: Sequence[str] = ()) -> AggregatedLabels:
    """Aggregate the grades of a collection. `how`: majority, dawid-skene or resolved.

    `assessors`: names of those whose grades count, and `people` or `judges` for all of these; by default all.
    Raises BadInput for an unknown name, without grades, and for Dawid-Skene if the fit failed or collapsed.
    """
    kinds = {kind: kind in assessors for kind in ("people", "judges")}
    names = [name for name in assessors if name not in kinds]
    matrix = load_grade_matrix(collection, choose_assessors(known_assessors(collection), names=names, **kinds))
    fit = fit_matrix(matrix, tuple(assessor.name for assessor in matrix.assessors))
    is_usable = fit.solution is not None and not fit.solution.collapsed
    reason = fit.reason or (fit.solution.collapsed if fit.solution is not None else "")
    graded = int((matrix.grades != MISSING).any(axis=0).sum())
    described: dict[str, Any] = {
        "assessors": list(fit.names),
        "graded": graded,
        "ties": fit.ties,
        "posterior": None if is_usable else reason,
    }
    if how == "resolved":
        rows = Label.objects.filter(pair__collection=collection, aspect=None).order_by("pair_id")
        columns = list(zip(*rows.values_list("pair_id", "grade", "origin"), strict=True)) or [(), (), ()]
        pairs, grades = (np.array(column, dtype=np.int64) for column in columns[:2])
        origins, ties = list(columns[2]), 0
    else:
        if how == "majority":
            # The pairs on which one grade has more votes than any other, and that grade.
            classes = np.unique(matrix.grades[matrix.grades != MISSING])
            votes = (
                np.stack([(matrix.grades == grade).sum(axis=0) for grade in classes])
                if len(classes)
                else np.zeros((1, len(matrix.pairs)))
            )
            largest = votes.max(axis=0)
            has_majority = (largest > 0) & ((votes == largest).sum(axis=0) == 1)
            pairs, grades = matrix.pairs[has_majority], classes[votes.argmax(axis=0)[has_majority]].astype(np.int64)
        elif is_usable:
            pairs, grades = fit.pairs, fit.labels
        else:
            words = _("Dawid-Skene has no labels for %(name)s: %(why)s. Use majority or resolved.")
            raise BadOption("aggregate", words % {"name": collection.name, "why": reason})
        if not len(pairs):
            words = _("No one has graded a pair of %(name)s yet.")
            raise BadOption("aggregate", words % {"name": collection.name})
        origins, ties = [how] * len(pairs), graded - len(pairs)
        described["ties"] = ties
    # ADR 0016: the posterior is always Dawid-Skene's, also of grades by majority, so that the column has one meaning.
    posteriors = fit.posterior_of(pairs, grades) if is_usable else np.full(len(pairs), np.nan)
    rounded = [None if np.isnan(posterior) else round(float(posterior), PLACES) for posterior in posteriors]
    return AggregatedLabels(pairs.tolist(), grades.tolist(), origins, rounded, ties, described)
