"""API of the assessors' agreement: the document of the command agreement, the table, and measuring."""

from typing import Any, Literal

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Query, Router, Schema
from ninja.decorators import decorate_view

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope
from annotation.agreement import aggregates, cached_results
from annotation.agreement.grade_matrix import KnownAssessor, Population, choose_assessors, visible_assessors
from annotation.agreement.page import AgreementFilters, send_csv
from annotation.agreement.report import agreement_report, build_json_document
from api.authentication import MANAGE, may, scope_of
from api.idempotency import once
from api.problems import RequestBody
from corpus.errors import BadInput

router = Router(tags=["results"])
CSV: dict[str, Any] = {
    "responses": {200: {"description": "The table.", "content": {"text/csv": {"schema": {"type": "string"}}}}}
}


class AssessorsIn(RequestBody):
    """Assessors whose agreement is measured, and on which pairs; none named: all of them."""

    assessors: list[str] = Field([], max_length=100)
    people: bool = False
    judges: bool = False
    binarize: int | None = Field(None, ge=1, le=100, description="Grades from here on count as 1, all others as 0.")
    population: Population = "all"


class AgreementIn(AssessorsIn):
    """Assessors whose agreement is measured, and the resamples for its intervals."""

    bootstrap: int = Field(0, ge=0, le=2000, description="Resamples for 95% intervals; 0: none.")


class ContractDocument(Schema):
    """A document of the contract: the JSON of the command of this name."""

    document: dict[str, Any]


class MeasuredOut(Schema):
    """State of a measurement; `done` false: a worker measures later, ask for the result again."""

    done: bool


@router.get("/collections/{slug:name}/agreement", auth=may("results"), response=ContractDocument, openapi_extra=CSV)
def read_agreement(
    request: HttpRequest, name: str, asked: Query[AgreementIn], format: Literal["json", "csv"] = "json"
) -> Any:
    """Measure how far assessors agree: kappa, Fleiss' kappa, Krippendorff's alpha, Dawid-Skene.

    With `format=csv` download every two assessors with all measures and their intervals as a table, which is of the
    last stored measurement.
    """
    if format == "csv":
        return _send_table(request, asked)
    scope = scope_of(request)
    collection, assessors = scope.collection, _filters_of(scope, asked)[0].chosen
    # Measuring would take minutes and block a process of the web server.
    if cached_results.is_large(collection, assessors):
        raise BadInput(_("So many grades are measured by a worker: ask for it, and read the table when it is done"))
    options = asked.dict(include={"binarize", "bootstrap", "population"})
    report = agreement_report(collection, assessors, **options)
    second = aggregates.fit_dawid_skene(report)
    return {"document": build_json_document(report, aggregates.dawid_skene_document(second))}


@router.post("/collections/{slug:name}/agreement", auth=may("admin", MANAGE), response=MeasuredOut)
@decorate_view(once)
def measure_agreement(request: HttpRequest, name: str, body: AssessorsIn) -> Any:
    """Measure agreement and keep it for the table: by a worker where one lives. Only large collections need it."""
    scope = scope_of(request)
    # Checked before the entry in the audit log, which no transaction would roll back without an idempotency key.
    filters, _assessors = _filters_of(scope, body)
    record(scope, "statistics.asked")
    return {"done": cached_results.refresh(scope.collection, filters)}


@router.get("/collections/{slug:name}/agreement.csv", auth=may("results"), include_in_schema=False)
def read_agreement_table(request: HttpRequest, name: str, asked: Query[AssessorsIn]) -> Any:
    """Download the table at its former address: `agreement?format=csv`."""
    return _send_table(request, asked)


def _send_table(request: HttpRequest, asked: AssessorsIn) -> Any:
    """Send every two assessors with all measures and their intervals as a table. Raises BadInput."""
    scope = scope_of(request)
    filters, assessors = _filters_of(scope, asked)
    figures = cached_results.get_figures(scope.collection, filters, assessors)
    if figures.report is None:
        raise BadInput(figures.failure or _("Not measured yet: request the measurement, then read the table"))
    return send_csv(figures.report)


def _filters_of(scope: Scope, query: AssessorsIn) -> tuple[AgreementFilters, list[KnownAssessor]]:
    """Return the filters of the agreement page for a query, so that both share stored figures, and all assessors.

    Raises BadInput.
    """
    collection = scope.collection
    if query.binarize is not None and query.binarize > collection.grades:
        raise BadInput(_("binarize: this collection has grades from 0 to %(grades)s") % {"grades": collection.grades})
    assessors = visible_assessors(collection, hides_people=not scope.may_admin)
    selected = choose_assessors(assessors, names=query.assessors, people=query.people, judges=query.judges)
    everybody = not (query.assessors or query.people or query.judges)
    return AgreementFilters(tuple(selected), query.population, "kappa", query.binarize, everybody), assessors
