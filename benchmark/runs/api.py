"""API operations on runs: the rankings of systems, made here or imported."""

from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, File, Form, Router, Schema, Status
from ninja.decorators import decorate_view
from ninja.files import UploadedFile

from actions.services import Actor
from api.authentication import MANAGE, may, scope_of
from api.estimates import JobEstimateOut, show_estimate
from api.etags import require_match
from api.idempotency import once
from api.operations import COLLECTION_PATH, estimate_operation, operation
from api.paging import Cursor, Limit, Page, find_row, page_of
from benchmark.models import Run
from benchmark.runs import rankings, services
from benchmark.runs.builders import RUNS
from benchmark.runs.options import RunImportOptions
from corpus.chart_downloads import send_lines
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput
from corpus.holding import deleted_meanwhile, hold_row
from jobs.models import JobState

router = Router(tags=["runs"])
# How the OpenAPI document describes a response that is a file.
TEXT_FILE: dict[str, Any] = {
    "responses": {200: {"description": "The file.", "content": {"text/plain": {"schema": {"type": "string"}}}}}
}


class RunOut(Schema):
    """A ranking of documents for each query."""

    number: int
    name: str
    kind: str
    state: str
    depth: int
    done: int
    total: int
    error: str
    created_at: datetime
    search: dict[str, Any] = Field(
        {}, description="Where an index was searched: its recall, and the queries and depth that it was measured on."
    )
    counts: dict[str, int] = Field(
        {},
        description="Of a search endpoint: answers without documents (empty) or of a part of them (partial), hits that "
        "repeated a document of their answer (duplicates), without_id, without_text, with another text than an earlier "
        "answer (varying), and documents that are new or changed in the collection (elsewhere:NAME: whose text had "
        "come from another endpoint).",
    )


class RunEstimateOut(JobEstimateOut):
    """Expected model calls of making a run, and their cost; `asks`: whether a model is called at all."""

    asks: bool


class ImportedRunOut(Schema):
    """An imported run, and what was skipped of its file."""

    number: int
    name: str
    queries: int
    lines: int
    unknown_queries: int
    unknown_documents: int
    excluded: int
    missing_queries: int
    depth: int


def _runs(request: HttpRequest) -> Any:
    return Run.objects.select_related("collection").filter(collection=scope_of(request).collection, is_deleted=False)


def _find_run(request: HttpRequest, number: int) -> Run:
    run: Run = find_row(_runs(request), number, _("Run not found."))
    return run


def _show_run(row: Run) -> dict[str, Any]:
    fields = ("name", "kind", "state", "depth", "done", "total", "error", "created_at", "search", "counts")
    return {"number": row.pk, **{name: getattr(row, name) for name in fields}}


@router.get(f"{COLLECTION_PATH}/runs", auth=may("admin"), response=Page[RunOut])
def list_runs(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the runs."""
    return page_of(_runs(request), after, limit, _show_run)


operation(router, services.make_run, "POST", "/runs", response=RunOut, show=_show_run)
estimate_operation(
    router,
    services.make_run,
    services.estimate_run,
    "/runs",
    response=RunEstimateOut,
    show=lambda estimate: {**show_estimate(estimate), "asks": estimate is not None},
)


@router.post(f"{COLLECTION_PATH}/runs/import", auth=may("admin", MANAGE), response={201: list[ImportedRunOut]})
@decorate_view(once)
def import_runs(
    request: HttpRequest, name: str, files: File[list[UploadedFile]], options: Form[RunImportOptions]
) -> Any:
    """Import runs in TREC's format, all or none. Each file is a run with its name; `run` names a single file's run."""
    scope = scope_of(request)
    imported = services.import_uploads(Actor.of(scope), scope.collection, options, files)
    return Status(201, [{"number": run.pk, **counts} for run, counts in imported])


@router.get(f"{COLLECTION_PATH}/runs/{{number}}", auth=may("admin"), response=RunOut)
def read_run(request: HttpRequest, name: str, number: int) -> Any:
    """Read a run and its progress."""
    return _show_run(_find_run(request, number))


@router.delete(f"{COLLECTION_PATH}/runs/{{number}}", auth=may("admin", MANAGE), response={204: None})
def delete_run(request: HttpRequest, name: str, number: int) -> Any:
    """Delete a run: it disappears from all lists, and its name is free."""
    scope = scope_of(request)
    with transaction.atomic():
        run = hold_row(_find_run(request, number), no_key=True)
        # The row stays, because reports refer to it.
        if run.is_deleted:
            raise deleted_meanwhile()
        require_match(request, RunOut, _show_run(run))
        services.delete_run(Actor.of(scope), run)
    return Status(204, None)


@router.get(f"{COLLECTION_PATH}/runs/{{number}}/file", auth=may("admin"), openapi_extra=TEXT_FILE)
def read_run_file(request: HttpRequest, name: str, number: int) -> Any:
    """Download a run in TREC's format."""
    run = _find_run(request, number)
    if run.state != JobState.READY:
        raise Http404(_("This run is not ready yet."))
    return send_lines(rankings.write_trec(run), f"{run.name}.run")


@router.post(f"{COLLECTION_PATH}/runs/{{number}}/{{act}}", auth=may("admin", MANAGE), response=RunOut)
@decorate_view(once)
def control_run(request: HttpRequest, name: str, number: int, act: Literal["cancel", "go-on"]) -> Any:
    """Cancel a run, or make the rest of one that was cancelled or failed."""
    scope, run = scope_of(request), _find_run(request, number)
    with transaction.atomic():
        if not {"cancel": RUNS.cancel, "go-on": RUNS.go_on}[act](run):
            raise BadInput(_("No changes made: the run's state no longer allows this action."))
        record_act(scope, "run.control", run=run.name, what=act)
    run.refresh_from_db()
    return _show_run(run)
