"""Agreement of a collection's assessors: what the command prints and the page shows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from django.db.models import Count, Q
from django.utils.translation import gettext as _

from annotation.agreement.measures import Measures, Pairwise, measure
from annotation.agreement.resampling import MISSING
from annotation.assessments import Assessments, Known, Population, assessments
from corpus.errors import BadInput
from corpus.models import Collection, Query


@dataclass(frozen=True, slots=True)
class OneAssessor:
    """An assessor in a report. `n`: pairs graded; `relevant`: how many of them from `relevant_from` on."""

    name: str
    kind: str
    n: int
    relevant: int

    @property
    def prevalence(self) -> float | None:
        """Share of its pairs that it finds relevant."""
        return self.relevant / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class Report:
    """Measures over the pairs of a population, and whose grades they compare, in the order of the matrix."""

    collection: str
    binarize: int | None
    population: Population
    assessors: tuple[OneAssessor, ...]
    measures: Measures
    found: Assessments = field(repr=False, compare=False)
    """The grades that were measured, binarized where asked for."""

    @property
    def prevalence(self) -> float | None:
        """Share of relevant among all grades of these assessors."""
        n = sum(one.n for one in self.assessors)
        return sum(one.relevant for one in self.assessors) / n if n else None

    def name(self, place: int) -> str:
        """The assessor's name, by place."""
        return self.assessors[place].name


def agreement_report(
    collection: Collection,
    chosen: Sequence[Known],
    *,
    binarize: int | None = None,
    bootstrap: int = 0,
    population: Population = "all",
) -> Report:
    """Measure the agreement of the chosen assessors. `binarize`: grades from it on are 1, others 0.

    Raises BadInput for a grade that the collection does not have, or a negative number of resamples.
    """
    if binarize is not None and not 1 <= binarize <= collection.grades:
        raise BadInput(f"--binarize {binarize}: this collection has grades 0 to {collection.grades}; use 1 or more")
    if bootstrap < 0:
        raise BadInput(f"--bootstrap {bootstrap}: the number of resamples cannot be negative")
    found = assessments(collection, chosen, population=population)
    graded, relevant = found.counts(), (found.grades >= collection.relevant_from).sum(axis=1)
    grades = found.grades
    if binarize is not None:
        grades = np.where(grades == MISSING, MISSING, grades >= binarize)
    return Report(
        collection=collection.name,
        binarize=binarize,
        population=population,
        assessors=tuple(
            OneAssessor(one.name, one.kind, n, int(yes))
            for one, n, yes in zip(found.assessors, graded, relevant, strict=True)
        ),
        measures=measure(grades, bootstrap=bootstrap),
        found=replace(found, grades=grades),
    )


def mixed_prompts(collection: Collection) -> str:
    """A sentence where some queries have answers and some have none: judges are asked differently (SPEC S1)."""
    count = Query.objects.filter(collection=collection, is_current=True).aggregate(
        every=Count("pk"), plain=Count("pk", filter=Q(answers=[]))
    )
    if count["plain"] in (0, count["every"]):
        return ""
    return _(
        "%(count)s of %(count2)s queries have no answers, and judges are asked about them by another "
        "prompt. These numbers mix both."
    ) % {"count": f"{count['plain']:,}", "count2": f"{count['every']:,}"}


def document(report: Report, dawid_skene: dict[str, Any] | None = None) -> dict[str, Any]:
    """The JSON document of the command `agreement` (CONTRACT); `dawid_skene`: see annotation.agreement.aggregates."""
    measures = report.measures
    return {
        "collection": report.collection,
        "binarize": report.binarize,
        "assessors": [{"name": one.name, "kind": one.kind, "n": one.n} for one in report.assessors],
        "items": measures.items,
        "pairwise": [_pairwise(report, pair) for pair in measures.pairwise],
        "fleiss": asdict(measures.fleiss),
        "alpha_nominal": asdict(measures.alpha_nominal),
        "alpha_ordinal": asdict(measures.alpha_ordinal),
        "alpha_interval": asdict(measures.alpha_interval),
        "majority": [
            {
                "name": report.name(one.a),
                "n": one.n,
                "kappa": asdict(one.kappa),
                "percent": asdict(one.percent),
            }
            for one in measures.majority
        ],
        "dawid_skene": dawid_skene,
    }


def _pairwise(report: Report, pair: Pairwise) -> dict[str, Any]:
    return {
        "a": report.name(pair.a),
        "b": report.name(pair.b),
        "n": pair.n,
        "kappa": asdict(pair.kappa),
        "kappa_linear": asdict(pair.kappa_linear),
        "kappa_quadratic": asdict(pair.kappa_quadratic),
        "percent": asdict(pair.percent),
    }
