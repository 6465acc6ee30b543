"""Agreement of a collection's assessors: what the command prints and the page shows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from django.db.models import Count, Q
from django.utils.translation import gettext as _

from annotation.agreement.grade_matrix import GradeMatrix, KnownAssessors, Population, find_copies, load_grade_matrix
from annotation.agreement.measures import FAMILY, AgreementMeasures, Statistic, compute_measures
from annotation.agreement.resampling import MISSING
from corpus.errors import BadOption
from corpus.models import Assessor, Collection, Query
from store.sql import fetch_row


@dataclass(frozen=True, slots=True)
class OneAssessor:
    """An assessor in a report."""

    name: str
    kind: str
    n: int  # Pairs graded.
    relevant: int  # Of them, those graded from `relevant_from` on.

    @property
    def prevalence(self) -> float | None:
        """Return the share of the assessor's pairs that it finds relevant; None without pairs."""
        return self.relevant / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """Measures over a population's pairs, and whose grades they compare, in matrix order."""

    collection: str
    binarize: int | None
    population: Population
    assessors: tuple[OneAssessor, ...]
    measures: AgreementMeasures
    # The grades that were measured, binarized where asked for.
    found: GradeMatrix = field(repr=False, compare=False)
    copies: tuple[tuple[int, ...], ...] = ()  # As `find_copies` gives them.

    def is_copy(self, a: int, b: int) -> bool:
        """Return whether two assessors are the same model, whose agreement is with itself."""
        return any(a in group and b in group for group in self.copies)

    @property
    def prevalence(self) -> float | None:
        """Share of relevant among all grades of these assessors."""
        n = sum(one.n for one in self.assessors)
        return sum(one.relevant for one in self.assessors) / n if n else None

    def name(self, place: int) -> str:
        """Return the assessor's name, by place."""
        return self.assessors[place].name


def agreement_report(
    collection: Collection,
    chosen: Sequence[KnownAssessors],
    *,
    binarize: int | None = None,
    bootstrap: int = 0,
    population: Population = "all",
) -> AgreementReport:
    """Measure the chosen assessors' agreement. `binarize`: grades from it are 1. BadInput."""
    if binarize is not None and not 1 <= binarize <= collection.grades:
        raise BadOption("binarize", f"This collection has grades 0 to {collection.grades}: use 1 or more.")
    if bootstrap < 0:
        raise BadOption("bootstrap", "The number of resamples cannot be negative.")
    found = load_grade_matrix(collection, chosen, population=population)
    graded, relevant = found.counts(), (found.grades >= collection.relevant_from).sum(axis=1)
    grades = found.grades
    if binarize is not None:
        # Missing grades stay missing: they are no "not relevant".
        grades = np.where(grades == MISSING, np.int16(MISSING), (grades >= binarize).astype(np.int16))
    return AgreementReport(
        collection=collection.name,
        binarize=binarize,
        population=population,
        assessors=tuple(
            OneAssessor(one.name, one.kind, n, int(yes))
            for one, n, yes in zip(found.assessors, graded, relevant, strict=True)
        ),
        measures=compute_measures(grades, bootstrap=bootstrap),
        found=replace(found, grades=grades),
        copies=tuple(find_copies(found.assessors)),
    )


def of_itself(report: AgreementReport) -> list[str]:
    """Write a sentence for each group of copies whose own agreement is among the figures."""
    words = _(
        "%(names)s are one model with the same parameters. Their agreement shows how "
        "consistent the model is, not how accurate."
    )
    return [words % {"names": ", ".join(map(report.name, group))} for group in report.copies]


_BOTH_ARMS = """
SELECT EXISTS (SELECT FROM corpus_item i JOIN current_judgment j ON j.item_id = i.id
               WHERE i.collection_id = %(collection)s AND i.arm IN ('hidden', 'reveal')),
       EXISTS (SELECT FROM corpus_item i JOIN current_judgment j ON j.item_id = i.id
               WHERE i.collection_id = %(collection)s AND i.arm = 'shown')
"""


def mixed_votes(report: AgreementReport, collection: Collection) -> str:
    """Write a sentence where people's votes are blind and others: the Overview keeps them apart."""
    if not any(one.kind == Assessor.Kind.PERSON for one in report.assessors):
        return ""
    if not all(fetch_row(_BOTH_ARMS, collection=collection.pk)):
        return ""
    return _(
        "People's first votes are compared here, blind ones and those with the debate in view together. "
        "The Overview measures people's agreement on blind votes only."
    )


def mixed_prompts(collection: Collection) -> str:
    """Write a sentence where only some queries have answers: judges are asked differently."""
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
    """Build the JSON of the command `agreement`; `dawid_skene`: annotation.agreement.aggregates."""
    measures = report.measures
    return {
        "collection": report.collection,
        "binarize": report.binarize,
        "assessors": [{"name": one.name, "kind": one.kind, "n": one.n} for one in report.assessors],
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
        **({"copies": [[report.name(place) for place in group] for group in report.copies]} if report.copies else {}),
    }


def _statistic_document(one: Statistic) -> dict[str, Any]:
    # `asdict` gives the same and takes ten times as long: there may be 100,000 of them.
    return {"value": one.value, "low": one.low, "high": one.high, "n": one.n, "reason": one.reason}
