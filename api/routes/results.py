"""What was measured and made: agreement, label audits, runs, reports, training jobs and models."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Query, Router, Schema

from annotation.agreement import aggregates
from annotation.agreement.cached_results import is_large
from annotation.agreement.grade_matrix import choose_assessors, known_assessors
from annotation.agreement.report import agreement_report, build_json_document
from annotation.label_quality.loading import load_label_quality
from api.authentication import may, scope_of
from api.problems import REFUSALS, Given
from api.routes.pages import Cursor, Limit, Page, find_row, page_of
from benchmark.models import Report, Run
from corpus.errors import BadInput
from judges.models import Campaign
from training.models import Job, Model

router = Router(tags=["results"])


class AgreementIn(Given):
    """Whose agreement is measured; nobody named: every judge, person and import."""

    assessors: list[str] = Field([], max_length=100)
    people: bool = False
    judges: bool = False
    binarize: int | None = Field(None, ge=1, le=100, description="Grades from here on count as 1, all others as 0.")
    bootstrap: int = Field(0, ge=0, le=2000, description="Resamples for 95% intervals; 0: none.")


class ContractDocument(Schema):
    """A document of the contract: the JSON of the command of this name."""

    document: dict[str, Any]


class ReasonOut(Schema):
    """Why labels should not go out: so many pairs, of so many routes; `value` is a share or an alpha."""

    key: str
    count: int
    routes: int
    value: float


class QualityOut(Schema):
    """Whether the labels can go out, and why not; `failure`: why that could not be measured."""

    can_go_out: bool
    reasons: list[ReasonOut]
    failure: str
    status: dict[str, Any]


class RunOut(Schema):
    """A ranking of documents for each query."""

    number: int
    name: str
    kind: str
    state: str
    depth: int
    created_at: datetime


class ReportOut(Schema):
    """A benchmark report; `result` is empty until it is ready."""

    number: int
    state: str
    result: dict[str, Any]
    created_at: datetime


class JobOut(Schema):
    """A training job."""

    number: int
    kind: str
    state: str
    device: str
    error: str
    created_at: datetime


class ModelOut(Schema):
    """A published model."""

    number: int
    name: str
    recipe: str
    base: str
    summary: dict[str, Any]
    created_at: datetime


@router.get("/collections/{slug:name}/agreement", auth=may("admin"), response={200: ContractDocument, **REFUSALS})
def read_agreement(request: HttpRequest, name: str, asked: Query[AgreementIn]) -> Any:
    """Measure how far the assessors agree: kappa, Fleiss' kappa, Krippendorff's alpha, Dawid-Skene."""
    collection = scope_of(request).collection
    known = known_assessors(collection)
    chosen = choose_assessors(known, names=asked.assessors, people=asked.people, judges=asked.judges)
    if is_large(collection, chosen):
        raise BadInput(_("so many grades are measured by a worker: use the Quality page, or the command agreement"))
    report = agreement_report(collection, chosen, binarize=asked.binarize, bootstrap=asked.bootstrap)
    found = aggregates.fit_dawid_skene(report)
    return {"document": build_json_document(report, aggregates.dawid_skene_document(found))}


@router.get("/collections/{slug:name}/quality", auth=may("admin"), response={200: QualityOut, **REFUSALS})
def read_quality(request: HttpRequest, name: str) -> Any:
    """Say whether the labels can go out, and what is in the way."""
    collection = scope_of(request).collection
    newest = Campaign.judging.filter(collection=collection).order_by("-pk").first()
    found = load_label_quality(collection, newest)
    can_go_out = not found.failure and not found.reasons
    return {"can_go_out": can_go_out, "reasons": found.reasons, "failure": found.failure, "status": found.status}


@router.get("/collections/{slug:name}/runs", auth=may("admin"), response={200: Page[RunOut], **REFUSALS})
def list_runs(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the runs."""
    return page_of(Run.objects.filter(collection=scope_of(request).collection), after, limit, _show_run)


def _show_run(row: Run) -> dict[str, Any]:
    shown = ("name", "kind", "state", "depth", "created_at")
    return {"number": row.pk, **{name: getattr(row, name) for name in shown}}


@router.get("/collections/{slug:name}/reports", auth=may("admin"), response={200: Page[ReportOut], **REFUSALS})
def list_reports(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the benchmark reports."""
    return page_of(Report.objects.filter(collection=scope_of(request).collection), after, limit, _show_report)


@router.get("/collections/{slug:name}/reports/{number}", auth=may("admin"), response={200: ReportOut, **REFUSALS})
def read_report(request: HttpRequest, name: str, number: int) -> Any:
    """Read a benchmark report with its measures."""
    rows = Report.objects.filter(collection=scope_of(request).collection)
    return _show_report(find_row(rows, number, _("Report not found.")))


def _show_report(row: Report) -> dict[str, Any]:
    return {"number": row.pk, "state": row.state, "result": row.result or {}, "created_at": row.created_at}


@router.get("/collections/{slug:name}/trainings", auth=may("admin"), response={200: Page[JobOut], **REFUSALS})
def list_trainings(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the training jobs."""
    rows = Job.objects.filter(collection=scope_of(request).collection, kind=Job.Kind.TRAIN)
    return page_of(rows, after, limit, _show_job)


def _show_job(row: Job) -> dict[str, Any]:
    shown = ("kind", "state", "device", "error", "created_at")
    return {"number": row.pk, **{name: getattr(row, name) for name in shown}}


@router.get("/collections/{slug:name}/models", auth=may("admin"), response={200: Page[ModelOut], **REFUSALS})
def list_models(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the models that were trained here."""
    return page_of(Model.objects.filter(job__collection=scope_of(request).collection), after, limit, _show_model)


def _show_model(row: Model) -> dict[str, Any]:
    shown = ("name", "recipe", "base", "summary", "created_at")
    return {"number": row.pk, **{name: getattr(row, name) for name in shown}}
