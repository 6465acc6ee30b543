"""The agreement report of a collection's assessors, which the command prints and the page shows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from django.db.models import Count, Q
from django.utils.translation import gettext as _

from annotation.access.hidden_names import PEOPLE
from annotation.agreement.grade_matrix import (
    JUDGES,
    GradeMatrix,
    KnownAssessor,
    Population,
    find_copies,
    load_grade_matrix,
)
from annotation.agreement.measures import FAMILY, MANY, AgreementMeasures, Statistic, compute_measures
from annotation.agreement.resampling import MISSING
from annotation.agreement.shared_errors import find_shared_errors, majority_grades
from corpus.errors import BadOption
from corpus.models import Assessor, Collection, Query
from store.sql import fetch_row

GOLD = (*PEOPLE, Assessor.Kind.REFERENCE)  # Whose grades tell which judges are wrong.


@dataclass(frozen=True, slots=True)
class AssessorCounts:
    """An assessor in a report, with the number of grades."""

    name: str
    kind: str
    n: int  # The number of graded pairs.
    relevant: int  # Those with a grade of at least `relevant_from`.

    @property
    def prevalence(self) -> float | None:
        """Return the share of relevant pairs among the graded ones; None without any."""
        return self.relevant / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """Measures over the pairs of a population, and the assessors in the order of the matrix."""

    collection: str
    binarize: int | None
    population: Population
    assessors: tuple[AssessorCounts, ...]
    measures: AgreementMeasures
    # The measured grades, binarized with the option `binarize`.
    found: GradeMatrix = field(repr=False, compare=False)
    copies: tuple[tuple[int, ...], ...] = ()  # From `find_copies`.
    err_together: tuple[tuple[int, ...], ...] = ()  # Groups of judges, as positions.

    def is_copy(self, a: int, b: int) -> bool:
        """Return whether two assessors are the same model."""
        return any(a in group and b in group for group in self.copies)

    @property
    def prevalence(self) -> float | None:
        """Return the share of relevant grades among all grades of these assessors; None without any."""
        n = sum(assessor.n for assessor in self.assessors)
        return sum(assessor.relevant for assessor in self.assessors) / n if n else None

    def name(self, position: int) -> str:
        """Return the name of the assessor at a position."""
        return self.assessors[position].name


def agreement_report(
    collection: Collection,
    assessors: Sequence[KnownAssessor],
    *,
    binarize: int | None = None,
    bootstrap: int = 0,
    population: Population = "all",
) -> AgreementReport:
    """Measure the agreement of assessors. `binarize`: grades from it on count as 1, others as 0. Raises BadOption."""
    if binarize is not None and not 1 <= binarize <= collection.grades:
        raise BadOption("binarize", f"This collection has grades 0 to {collection.grades}: use 1 or more.")
    if bootstrap < 0:
        raise BadOption("bootstrap", "The number of resamples cannot be negative.")
    matrix = load_grade_matrix(collection, assessors, population=population)
    graded, relevant = matrix.counts(), (matrix.grades >= collection.relevant_from).sum(axis=1)
    grades = matrix.grades
    if binarize is not None:
        # A missing grade is not "not relevant".
        grades = np.where(grades == MISSING, np.int16(MISSING), (grades >= binarize).astype(np.int16))
    matrix = replace(matrix, grades=grades)
    # Judges that err together, by the grades of people and references among the assessors.
    judges = [position for position, assessor in enumerate(matrix.assessors) if assessor.kind in JUDGES]
    err_together: tuple[tuple[int, ...], ...] = ()
    if 1 < len(judges) <= MANY:
        gold = majority_grades(grades[[assessor.kind in GOLD for assessor in matrix.assessors]])
        groups = find_shared_errors(grades[judges], gold)
        err_together = tuple(tuple(judges[position] for position in group) for group in groups)
    return AgreementReport(
        collection=collection.name,
        binarize=binarize,
        population=population,
        assessors=tuple(
            AssessorCounts(assessor.name, assessor.kind, n, int(relevant_count))
            for assessor, n, relevant_count in zip(matrix.assessors, graded, relevant, strict=True)
        ),
        measures=compute_measures(grades, bootstrap=bootstrap),
        found=matrix,
        copies=tuple(find_copies(matrix.assessors)),
        err_together=err_together,
    )


def describe_copies(report: AgreementReport) -> list[str]:
    """Return a sentence for each group of copies, whose agreement with itself is among the figures."""
    message = _(
        "%(names)s are one model with the same parameters. Their agreement shows how "
        "consistent the model is, not how accurate."
    )
    return [message % {"names": ", ".join(map(report.name, group))} for group in report.copies]


_BOTH_ARMS = """
SELECT EXISTS (SELECT FROM corpus_item i JOIN current_judgment j ON j.item_id = i.id
               WHERE i.collection_id = %(collection)s AND i.arm IN ('hidden', 'reveal')),
       EXISTS (SELECT FROM corpus_item i JOIN current_judgment j ON j.item_id = i.id
               WHERE i.collection_id = %(collection)s AND i.arm = 'shown')
"""


def shared_errors(report: AgreementReport) -> str:
    """Return a sentence where judges err together, which misleads Dawid-Skene; else ""."""
    if not report.err_together:
        return ""
    return _(
        "%(judges)s err together by the grades of people or the reference. Dawid-Skene takes assessors to err "
        "independently, so it rates these too high and others too low. Compare one judge of each such group."
    ) % {"judges": "; ".join(", ".join(map(report.name, group)) for group in report.err_together)}


def mixed_votes(report: AgreementReport, collection: Collection) -> str:
    """Return a sentence where some of people's votes are blind and others are not; else ""."""
    if not any(assessor.kind == Assessor.Kind.PERSON for assessor in report.assessors):
        return ""
    if not all(fetch_row(_BOTH_ARMS, collection=collection.pk)):
        return ""
    return _(
        "People's first votes are compared here, blind ones and those with the debate in view together. "
        "The Overview measures people's agreement on blind votes only."
    )


def mixed_prompts(collection: Collection) -> str:
    """Return a sentence where only some queries have answers, which changes the judges' prompt; else ""."""
    count = Query.objects.filter(collection=collection, is_current=True).aggregate(
        every=Count("pk"), plain=Count("pk", filter=Q(answers=[]))
    )
    if count["plain"] in (0, count["every"]):
        return ""
    return _(
        "%(count)s of %(count2)s queries have no listed answers and are judged with a "
        "different prompt. These figures mix both."
    ) % {"count": f"{count['plain']:,}", "count2": f"{count['every']:,}"}


def build_json_document(report: AgreementReport, dawid_skene: dict[str, Any] | None = None) -> dict[str, Any]:
    """Build the JSON of the command agreement; `dawid_skene`: from annotation.agreement.aggregates."""
    measures = report.measures
    return {
        "collection": report.collection,
        "binarize": report.binarize,
        "assessors": [{"name": assessor.name, "kind": assessor.kind, "n": assessor.n} for assessor in report.assessors],
        "items": measures.items,
        "pairwise": [
            {
                "a": report.name(pair.a),
                "b": report.name(pair.b),
                "n": pair.n,
                **{name: _statistic_document(getattr(pair, name)) for name in FAMILY},
                **({"copies": True} if report.is_copy(pair.a, pair.b) else {}),
            }
            for pair in measures.pairwise
        ],
        "pairwise_left_out": measures.apart,
        "fleiss": asdict(measures.fleiss),
        "fleiss_votes": measures.fleiss_votes,
        **{name: asdict(getattr(measures, name)) for name in ("alpha_nominal", "alpha_ordinal", "alpha_interval")},
        "majority": [
            {
                "name": report.name(pair.a),
                "n": pair.n,
                **{name: _statistic_document(getattr(pair, name)) for name in ("kappa", "percent")},
            }
            for pair in measures.majority
        ],
        "dawid_skene": dawid_skene,
        **(
            {"err_together": [[report.name(position) for position in group] for group in report.err_together]}
            if report.err_together
            else {}
        ),
        **(
            {"copies": [[report.name(position) for position in group] for group in report.copies]}
            if report.copies
            else {}
        ),
    }


def _statistic_document(statistic: Statistic) -> dict[str, Any]:
    # As `asdict`, which takes ten times as long: there may be 100,000 statistics.
    return {
        "value": statistic.value,
        "low": statistic.low,
        "high": statistic.high,
        "n": statistic.n,
        "reason": statistic.reason,
    }
