"""Figures of the agreement page: measured in the request, or by a worker and stored for large collections.

Stored figures contain no names: assessors are stored by kind and id, so that a changed or deleted name leaves no
trace.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db import Error, transaction
from django.http import Http404
from django.utils.translation import gettext as _

from annotation.agreement.aggregates import fit_dawid_skene
from annotation.agreement.clusters import cluster_assessors
from annotation.agreement.grade_matrix import (
    GradeMatrix,
    KnownAssessor,
    choose_assessors,
    find_copies,
    known_assessors,
)
from annotation.agreement.measures import MANY, AgreementMeasures, Couples, Statistic
from annotation.agreement.page import AgreementFilters
from annotation.agreement.report import AgreementReport, AssessorCounts, agreement_report
from annotation.agreement.resampling import MISSING, RESAMPLES
from annotation.models import StoredResult
from corpus.errors import QuorumError
from corpus.models import Assessor, Collection
from jobs.results import ProgressCallback, Result, ResultKind
from judges.domain.copies import sample_name
from store.sql import fetch_row

logger = logging.getLogger(__name__)

GRADES = 200_000  # The most grades that a request measures, ...
GRADES_OF_MANY = 20_000  # ... those of more than MANY assessors, ...
COUPLES = 5_000  # ... and the most couples of assessors, each of which is resampled.
KEPT = 12  # The most stored figures of a collection, for different filters.

MEANS = ("within", "outside")  # Of the kappas of a cluster.
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
    """The figures for some filters. `report` is None where they are not measured yet, or measuring failed."""

    report: AgreementReport | None
    second: dict[str, Any] | None  # Dawid-Skene's aggregate, from `_restore_figures`.
    clusters: list[dict[str, Any]]  # From `cluster_assessors`.
    stored: bool
    at: datetime | None
    asked: bool  # A worker measures them now.
    failure: str  # The reason why the last measurement failed.


def get_figures(collection: Collection, filters: AgreementFilters, assessors: Sequence[KnownAssessor]) -> Figures:
    """Return the figures for the filters, measured now or stored; `assessors`: all of the collection."""
    if stored := is_large(collection, filters.chosen):
        result = AGREEMENT.read(collection, **_build_options(filters))
    else:
        try:
            with measuring(collection):
                result = Result(compute_figures(collection, filters))
        except MeasuringFailed as error:
            result = Result(failure=str(error))
    failure = (result.job.error if result.job else "") or result.failure
    # Figures measured now are restored like stored ones, so that both look the same on the page.
    values = result.values
    report, second, clusters = _restore_figures(collection, filters, assessors, values) if values else (None, None, [])
    return Figures(report, second, clusters, stored, result.at, result.is_in_progress, failure)


def is_large(collection: Collection, assessors: Sequence[KnownAssessor]) -> bool:
    """Return whether a worker must measure the figures, because it takes long. One statement."""
    people = [assessor.id for assessor in assessors if assessor.kind != Assessor.Kind.JUDGE]
    judges = [assessor.id for assessor in assessors if assessor.kind == Assessor.Kind.JUDGE]
    grades = int(fetch_row(COUNT, people=people, collection=collection.pk, judges=judges)[0])
    present = min(len(assessors), grades)
    return grades > (GRADES if len(assessors) <= MANY else GRADES_OF_MANY) or present * (present - 1) // 2 > COUPLES


def refresh(collection: Collection, filters: AgreementFilters) -> bool:
    """Measure and store the figures; return False where a worker will do it. Raises MeasuringFailed."""
    result = AGREEMENT.refresh(collection, **_build_options(filters))
    if result is not None and result.failure:
        raise MeasuringFailed(result.failure)
    return result is not None


@contextmanager
def measuring(collection: Collection) -> Iterator[None]:
    """Turn unexpected errors of a measurement into MeasuringFailed, and log them; expected errors stay as they are."""
    try:
        yield
    except (QuorumError, Error, Http404):
        raise
    except Exception as error:
        logger.exception("the agreement of %s cannot be measured", collection)
        raise MeasuringFailed(describe_error(error)) from error


def describe_error(error: Exception) -> str:
    """Describe an unexpected error of a measurement in one line."""
    if isinstance(error, MemoryError):
        return _("not enough memory")
    return " ".join(f"Unexpected error: {error}".split())[:300]


def _build_options(filters: AgreementFilters) -> dict[str, Any]:
    keys = None if filters.everybody else sorted(_assessor_key(assessor) for assessor in filters.chosen)
    return {"population": filters.population, "binarize": filters.binarize, "chosen": keys}


def _assessor_key(assessor: KnownAssessor) -> list[Any]:
    """Identify an assessor without a name: kind, id, and the number of a sample beyond the first."""
    return [assessor.kind, assessor.id, *([assessor.sample] if assessor.sample else [])]


def _compute(collection: Collection, options: dict[str, Any], _tell: ProgressCallback) -> dict[str, Any]:
    """Measure the figures for stored options, with the current assessors."""
    assessors, keys = known_assessors(collection), options["chosen"]
    named = (
        choose_assessors(assessors)
        if keys is None
        else [assessor for assessor in assessors if _assessor_key(assessor) in keys]
    )
    filters = AgreementFilters(tuple(named), options["population"], "kappa", options["binarize"], keys is None)
    # In a savepoint, because a failure is stored in the transaction of the request.
    with transaction.atomic():
        return compute_figures(collection, filters)


AGREEMENT = ResultKind(
    "agreement", "annotation.compute_agreement", StoredResult, _compute, keep=KEPT, explain=describe_error
)


def compute_figures(collection: Collection, filters: AgreementFilters) -> dict[str, Any]:
    """Measure all figures, and return them for JSON."""
    report = agreement_report(
        collection, filters.chosen, binarize=filters.binarize, bootstrap=RESAMPLES, population=filters.population
    )
    measures, second = report.measures, fit_dawid_skene(report)
    # The pairs on which the aggregates differ, the most probable first. A row has the pair, the majority, Dawid-Skene's
    # label, its probability, and (position of the assessor, grade) for each of the pair's grades.
    differing = np.flatnonzero(second.differs)
    differing = differing[np.lexsort((second.pairs[differing], -second.probability[differing]))][:200]
    pairs, probabilities = second.pairs[differing], second.probability[differing]
    labels = np.stack([pairs, second.majority[differing], second.labels[differing]], axis=1).tolist()
    # The pairs of a report are sorted by their ids.
    grades_of_pair = report.found.grades[:, np.searchsorted(report.found.pairs, pairs)].T
    rows = [
        [*ids, probability, [(assessor, int(grade)) for assessor, grade in enumerate(grades) if grade != MISSING]]
        for ids, probability, grades in zip(labels, probabilities.tolist(), grades_of_pair, strict=True)
    ]
    return {
        "assessors": [_assessor_key(assessor) for assessor in report.found.assessors],
        "graded": [[assessor.n, assessor.relevant] for assessor in report.assessors],
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
            "rows": rows,
        },
        "err_together": report.err_together,
        "clusters": cluster_assessors(report) if len(report.assessors) > MANY else [],
    }


def _restore_figures(
    collection: Collection, filters: AgreementFilters, assessors: Sequence[KnownAssessor], values: dict[str, Any]
) -> tuple[AgreementReport, dict[str, Any], list[dict[str, Any]]]:
    """Return report, second aggregate and clusters from the result of `compute_figures`, with current names."""
    by_key = {tuple(_assessor_key(assessor)): assessor for assessor in assessors}
    people = []
    for kind, pk, *sample in values["assessors"]:
        # A deleted assessor is named by its id.
        name = sample_name(f"{kind} {pk}", *sample) if sample else f"{kind} {pk}"
        people.append(by_key.get((kind, pk, *sample)) or KnownAssessor(kind, pk, name, *sample))
    measures = values["measures"]
    overall: dict[str, Any] = {name: Statistic(**measures[name]) for name in STATISTICS}
    couples = {name: Couples.load(measures[name]) for name in ("pairwise", "majority")}
    report = AgreementReport(
        collection=collection.name,
        binarize=filters.binarize,
        population=filters.population,
        assessors=tuple(
            AssessorCounts(assessor.name, assessor.kind, n, relevant)
            for assessor, (n, relevant) in zip(people, values["graded"], strict=True)
        ),
        measures=AgreementMeasures(**measures | overall | couples),
        found=GradeMatrix(tuple(people), np.empty(0, dtype=np.int64), np.empty((len(people), 0), dtype=np.int16)),
        copies=tuple(find_copies(people)),
        # Results that an earlier release stored lack it.
        err_together=tuple(map(tuple, values.get("err_together", ()))),
    )
    # Not strict, because without a solution there are no shares.
    shares = zip(people, values["second"]["shares"], strict=False)
    columns = ("pair", "majority", "dawid_skene", "probability")
    second = values["second"] | {
        "accuracies": [(assessor.name, share, rates) for assessor, (share, *rates) in shares],
        "rows": [
            dict(zip(columns, row, strict=True))
            | {"grades": [(people[position].name, grade) for position, grade in grades]}
            for *row, grades in values["second"]["rows"]
        ],
    }
    clusters = [cluster | {key: _restore_mean(cluster, key) for key in MEANS} for cluster in values["clusters"]]
    return report, second, clusters


def _restore_mean(cluster: Mapping[str, Any], key: str) -> Statistic:
    """Return a mean kappa of a stored cluster."""
    stored = cluster[key]
    # An earlier release stored the value alone.
    return Statistic(**stored) if isinstance(stored, dict) else Statistic(stored, None, None, cluster["graded"], None)
