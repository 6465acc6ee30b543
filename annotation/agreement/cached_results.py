"""Figures of the agreement page: measured while it waits, or by a worker and stored where there is too much.

What is stored names nobody: assessors stand in it by kind and id, so a name that changes, or goes, leaves no trace.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db import Error, transaction
from django.http import Http404
from django.utils.translation import gettext as _

from annotation.agreement.aggregates import differing_pairs, fit_dawid_skene
from annotation.agreement.clusters import cluster_assessors
from annotation.agreement.grade_matrix import (
    GradeMatrix,
    KnownAssessors,
    choose_assessors,
    find_copies,
    known_assessors,
)
from annotation.agreement.measures import MANY, AgreementMeasures, Couples, Statistic
from annotation.agreement.page import AgreementFilters
from annotation.agreement.report import AgreementReport, OneAssessor, agreement_report
from annotation.agreement.resampling import RESAMPLES
from annotation.models import StoredResult
from corpus.errors import QuorumError
from corpus.models import Assessor, Collection
from jobs.results import Result, ResultKind, Tell
from judges.domain.copies import sample_name
from store.sql import fetch_row

logger = logging.getLogger(__name__)

GRADES = 200_000  # Grades up to which the page waits, ...
GRADES_OF_MANY = 20_000  # ... where there are more than MANY assessors, ...
# ... and couples up to which it waits: each that may have met is resampled, however few its grades.
COUPLES = 5_000
KEPT = 12  # Choices of assessors, pairs and grades whose figures a collection keeps.

STATISTICS = ("fleiss", "alpha_nominal", "alpha_ordinal", "alpha_interval")
SOLUTION = ("classes", "log_likelihood", "iterations", "converged", "starts", "collapsed")
COUNT = """
SELECT (SELECT count(*) FROM corpus_judgment j WHERE j.assessor_id = ANY(%(people)s) AND j.grade IS NOT NULL)
     + (SELECT count(*) FROM judges_attempt t JOIN judges_campaign c ON c.id = t.campaign_id
        WHERE c.collection_id = %(collection)s AND t.judge_id = ANY(%(judges)s) AND t.role = 'vote' AND t.counts)
"""


class MeasuringFailed(QuorumError):
    """Agreement could not be measured; the message says why."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one choice. `report` None: not measured yet, or measuring failed."""

    report: AgreementReport | None
    second: dict[str, Any] | None  # Dawid-Skene's aggregate, as `_restore_figures` makes it.
    clusters: list[dict[str, Any]]  # As `cluster_assessors` gives them.
    stored: bool
    at: datetime | None
    asked: bool  # A worker is at it.
    failure: str  # Why measuring failed the last time.


def get_figures(collection: Collection, asked: AgreementFilters, known: Sequence[KnownAssessors]) -> Figures:
    """Return everything that the page shows for what was asked; one row where it is stored. `known`: everybody here."""
    if stored := is_large(collection, asked.chosen):
        result = AGREEMENT.read(collection, **_build_options(asked))
    else:
        try:
            with measuring(collection):
                result = Result(compute_figures(collection, asked))
        except MeasuringFailed as error:
            result = Result(failure=str(error))
    failure = (result.job.error if result.job else "") or result.failure
    # Figures that were just measured take the way of stored ones, so that both pages are alike.
    values = result.values
    report, second, clusters = _restore_figures(collection, asked, known, values) if values else (None, None, [])
    return Figures(report, second, clusters, stored, result.at, result.is_in_progress, failure)


def is_large(collection: Collection, chosen: Sequence[KnownAssessors]) -> bool:
    """Return whether measuring takes so long that a worker does it. One statement."""
    people = [one.id for one in chosen if one.kind != Assessor.Kind.JUDGE]
    judges = [one.id for one in chosen if one.kind == Assessor.Kind.JUDGE]
    grades = int(fetch_row(COUNT, people=people, collection=collection.pk, judges=judges)[0])
    present = min(len(chosen), grades)
    return grades > (GRADES if len(chosen) <= MANY else GRADES_OF_MANY) or present * (present - 1) // 2 > COUPLES


def refresh(collection: Collection, asked: AgreementFilters) -> bool:
    """Measure anew: return False where a worker does it, else True. Raises MeasuringFailed."""
    result = AGREEMENT.refresh(collection, **_build_options(asked))
    if result is not None and result.failure:
        raise MeasuringFailed(result.failure)
    return result is not None


@contextmanager
def measuring(collection: Collection) -> Iterator[None]:
    """Measure while a page waits. Raises MeasuringFailed and logs what broke; refusals and outages stay as they are."""
    try:
        yield
    except (QuorumError, Error, Http404):
        raise
    except Exception as error:
        logger.exception("the agreement of %s cannot be measured", collection)
        raise MeasuringFailed(describe_error(error)) from error


def describe_error(error: Exception) -> str:
    """Say in one line what broke a measurement: memory in plain words, the rest as Python."""
    if isinstance(error, MemoryError):
        return _("not enough memory")
    return " ".join(f"Unexpected error: {error}".split())[:300]


def _build_options(asked: AgreementFilters) -> dict[str, Any]:
    chosen = None if asked.everybody else sorted(_assessor_key(one) for one in asked.chosen)
    return {"population": asked.population, "binarize": asked.binarize, "chosen": chosen}


def _assessor_key(one: KnownAssessors) -> list[Any]:
    """Return who an assessor is, without a name: kind, id, number of a sample beyond the first."""
    return [one.kind, one.id, *([one.sample] if one.sample else [])]


def _compute(collection: Collection, options: dict[str, Any], _tell: Tell) -> dict[str, Any]:
    """Measure what stored options ask for, with the assessors of now."""
    known, chosen = known_assessors(collection), options["chosen"]
    named = choose_assessors(known) if chosen is None else [one for one in known if _assessor_key(one) in chosen]
    asked = AgreementFilters(tuple(named), options["population"], "kappa", options["binarize"], chosen is None)
    # What breaks is kept in the same transaction, where a request has one.
    with transaction.atomic():
        return compute_figures(collection, asked)


AGREEMENT = ResultKind(
    "agreement", "annotation.compute_agreement", StoredResult, _compute, keep=KEPT, explain=describe_error
)


def compute_figures(collection: Collection, asked: AgreementFilters) -> dict[str, Any]:
    """Measure all figures, and return them as JSON takes them."""
    report = agreement_report(
        collection, asked.chosen, binarize=asked.binarize, bootstrap=RESAMPLES, population=asked.population
    )
    measures, second = report.measures, fit_dawid_skene(report)
    return {
        "assessors": [_assessor_key(one) for one in report.found.assessors],
        "graded": [[one.n, one.relevant] for one in report.assessors],
        "measures": {
            **{name: asdict(getattr(measures, name)) for name in STATISTICS},
            **{name: getattr(measures, name) for name in ("items", "apart", "fleiss_votes")},
            "pairwise": measures.pairwise.dump(),
            "majority": measures.majority.dump(),
        },
        "second": {
            "solution": {name: getattr(second.solution, name) for name in SOLUTION} if second.solution else None,
            **{name: getattr(second, name) for name in ("reason", "items", "differing", "ties")},
            "shares": [[share, *rates] for _name, share, rates in second.accuracies],
            "rows": differing_pairs(report, second),
        },
        "clusters": cluster_assessors(report) if len(report.assessors) > MANY else [],
    }


def _restore_figures(
    collection: Collection, asked: AgreementFilters, known: Sequence[KnownAssessors], found: dict[str, Any]
) -> tuple[AgreementReport, dict[str, Any], list[dict[str, Any]]]:
    """Return report, second aggregate and clusters of `compute_figures`, with names of now."""
    here = {tuple(_assessor_key(one)): one for one in known}
    people = []
    for kind, pk, *sample in found["assessors"]:
        # Who is nobody here any more keeps a number.
        name = sample_name(f"{kind} {pk}", *sample) if sample else f"{kind} {pk}"
        people.append(here.get((kind, pk, *sample)) or KnownAssessors(kind, pk, name, *sample))
    values = found["measures"]
    overall: dict[str, Any] = {name: Statistic(**values[name]) for name in STATISTICS}
    couples = {name: Couples.load(values[name]) for name in ("pairwise", "majority")}
    report = AgreementReport(
        collection=collection.name,
        binarize=asked.binarize,
        population=asked.population,
        assessors=tuple(
            OneAssessor(one.name, one.kind, n, yes) for one, (n, yes) in zip(people, found["graded"], strict=True)
        ),
        measures=AgreementMeasures(**values | overall | couples),
        found=GradeMatrix(tuple(people), np.empty(0, dtype=np.int64), np.empty((len(people), 0), dtype=np.int16)),
        copies=tuple(find_copies(people)),
    )
    # No `strict` here: where there is no solution, nobody has a share.
    shares = zip(people, found["second"]["shares"], strict=False)
    columns = ("pair", "majority", "dawid_skene", "probability")
    second = found["second"] | {
        "accuracies": [(one.name, share, rates) for one, (share, *rates) in shares],
        "rows": [
            dict(zip(columns, row, strict=True)) | {"grades": [(people[place].name, g) for place, g in grades]}
            for *row, grades in found["second"]["rows"]
        ],
    }
    return report, second, found["clusters"]
