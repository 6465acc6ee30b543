"""Runs: rankings of systems, made here or imported."""

from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.utils.translation import gettext as _
from ninja import Field, File, Form, Router, Schema, Status
from ninja.decorators import decorate_view
from ninja.files import UploadedFile

from api.authentication import MANAGE, may, scope_of
from api.etags import require_match
from api.idempotency import once
from api.paging import Cursor, Limit, Page, find_row, page_of
from api.problems import Given, validate_form
from benchmark.forms import MakeForm, UploadForm
from benchmark.models import Run
from benchmark.runs import builders, importing, rankings
from benchmark.runs.builders import RUNS
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput
from corpus.holding import deleted_meanwhile, hold_row
from corpus.models import Collection
from jobs.models import JobState

router = Router(tags=["runs"])
TREC: dict[str, Any] = {
    "responses": {200: {"description": "The file.", "content": {"text/plain": {"schema": {"type": "string"}}}}}
}
Kind = Literal["bm25", "hybrid", "rewrite", "reasoning", "dense", "rerank", "sparse", "rerank-folder"]
OfRun = "The options of its kind: docs/hole-filling.md. What is left out has the value that the page offers."


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


class RunIn(Given):
    """A run that is made here."""

    name: str = Field(max_length=100)
    kind: Kind = "bm25"
    depth: int = Field(100, ge=1, le=10_000, description="Documents of each query.")
    options: dict[str, str | int | float] = Field({}, max_length=20, description=OfRun)


class RunEstimateOut(Schema):
    """Expected calls to models of making a run, and their cost; `asks` false: none. `cost` null: no known price."""

    asks: bool
    calls: float
    calls_most: float
    cost: float | None = Field(description="USD.")
    cost_most: float | None


class ImportedRunOut(Schema):
    """A run that was imported, and what was left out of its file."""

    number: int
    name: str
    queries: int
    lines: int
    unknown_queries: int
    unknown_documents: int
    excluded: int
    missing_queries: int
    depth: int


@router.get("/collections/{slug:name}/runs", auth=may("admin"), response=Page[RunOut])
def list_runs(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the runs."""
    return page_of(_runs(request), after, limit, _show_run)


@router.post("/collections/{slug:name}/runs", auth=may("admin", MANAGE), response={201: RunOut})
@decorate_view(once)
def make_run(request: HttpRequest, name: str, body: RunIn) -> Any:
    """Make a run; a worker does the work."""
    scope, form = scope_of(request), _form_of(scope_of(request).collection, body)
    with transaction.atomic():
        run = RUNS.start_or_join(scope.collection, form.options(), scope.user.username)
        record_act(scope, RUNS.started, **RUNS.describe_start(run))
    run.refresh_from_db()
    return Status(201, _show_run(run))


@router.post("/collections/{slug:name}/runs/estimate", auth=may("admin"), response=RunEstimateOut)
def estimate_run(request: HttpRequest, name: str, body: RunIn) -> Any:
    """Estimate what making a run would ask of models and cost; nothing starts."""
    collection = scope_of(request).collection
    form = _form_of(collection, body)
    expected = RUNS.estimate_cost(collection, form.options())
    return {
        "asks": expected is not None,
        "calls": expected.calls.expected if expected else 0.0,
        "calls_most": expected.calls.upper if expected else 0.0,
        "cost": expected.cost.expected if expected and expected.cost else None,
        "cost_most": expected.cost.upper if expected and expected.cost else None,
    }


def _form_of(collection: Collection, body: RunIn) -> MakeForm:
    """Fill the page's form of this kind of run. Raises ValidationError, and BadInput for an option it does not have."""
    known = set(MakeForm.FIELDS[Run.Kind(body.kind)]) - {"name", "depth"}
    if unknown := sorted(body.options.keys() - known):
        raise BadInput(
            _("A run of the type %(kind)s has no option %(names)s; it has %(known)s")
            % {"kind": body.kind, "names": ", ".join(unknown), "known": ", ".join(sorted(known))}
        )
    offered = MakeForm(collection=collection, kind=body.kind).fields
    # A browser sends every field of the form with the value that it offers; a program only what it changes.
    usual = {key: field.initial for key, field in offered.items() if field.initial is not None}
    form = MakeForm(
        {**usual, **body.options, "name": body.name, "depth": body.depth}, collection=collection, kind=body.kind
    )
    validate_form(form, {key: f"options.{key}" for key in known})
    return form


@router.post("/collections/{slug:name}/runs/import", auth=may("admin", MANAGE), response={201: list[ImportedRunOut]})
@decorate_view(once)
def import_runs(
    request: HttpRequest,
    name: str,
    files: File[list[UploadedFile]],
    run: Form[str] = "",
    instruction: Form[str] = "",
    skip_unknown: Form[bool] = False,
    keep_self: Form[bool] = False,
) -> Any:
    """Import runs in TREC's format, all or none: a file is a run and gives it its name, or `run` does for one file."""
    scope = scope_of(request)
    data = {"name": run, "instruction": instruction, "skip_unknown": skip_unknown, "keep_self": keep_self}
    form = UploadForm(data, request.FILES)
    given = validate_form(form, {"name": "run"})
    named = form.named()
    # A dictionary below would keep the last of them without a word.
    if len({one for one, _file in named}) < len(named):
        raise BadInput(_("Two files have the same name: each run needs its own name"))
    with importing.saved_uploads([file for _name, file in named]) as paths, transaction.atomic():
        found = importing.import_runs(
            scope.collection,
            {one: path for (one, _file), path in zip(named, paths, strict=True)},
            scope.user.username,
            instruction=given["instruction"],
            skip_unknown=given["skip_unknown"],
            keep_self=given["keep_self"],
        )
        record_act(scope, "runs.imported", runs=[one.name for one, _counts in found])
    return Status(201, [{"number": one.pk, **counts} for one, counts in found])


@router.get("/collections/{slug:name}/runs/{number}", auth=may("admin"), response=RunOut)
def read_run(request: HttpRequest, name: str, number: int) -> Any:
    """Read a run, and how far it is."""
    return _show_run(_find_run(request, number))


@router.delete("/collections/{slug:name}/runs/{number}", auth=may("admin", MANAGE), response={204: None})
def delete_run(request: HttpRequest, name: str, number: int) -> Any:
    """Delete a run: it stands in no list any more, and its name is free."""
    scope = scope_of(request)
    with transaction.atomic():
        found = hold_row(_find_run(request, number), no_key=True)
        # Its row stays, for reports name it.
        if found.is_deleted:
            raise deleted_meanwhile()
        require_match(request, RunOut, _show_run(found))
        builders.delete_run(found)
        record_act(scope, "run.control", run=found.name, what="delete")
    return Status(204, None)


@router.get("/collections/{slug:name}/runs/{number}/file", auth=may("admin"), openapi_extra=TREC)
def read_run_file(request: HttpRequest, name: str, number: int) -> Any:
    """Download a run in TREC's format."""
    found = _find_run(request, number)
    if found.state != JobState.READY:
        raise Http404(_("This run is not ready yet."))
    return send_text(rankings.write_trec(found), f"{found.name}.run")


@router.post("/collections/{slug:name}/runs/{number}/{act}", auth=may("admin", MANAGE), response=RunOut)
@decorate_view(once)
def control_run(request: HttpRequest, name: str, number: int, act: Literal["cancel", "go-on"]) -> Any:
    """Cancel a run, or make the rest of one that was cancelled or failed."""
    scope, found = scope_of(request), _find_run(request, number)
    with transaction.atomic():
        if not {"cancel": RUNS.cancel, "go-on": RUNS.go_on}[act](found):
            raise BadInput(_("No changes made: the run's state no longer allows this action."))
        record_act(scope, "run.control", run=found.name, what=act)
    found.refresh_from_db()
    return _show_run(found)


def _runs(request: HttpRequest) -> Any:
    return Run.objects.select_related("collection").filter(collection=scope_of(request).collection, is_deleted=False)


def _find_run(request: HttpRequest, number: int) -> Run:
    found: Run = find_row(_runs(request), number, _("Run not found."))
    return found


def _show_run(row: Run) -> dict[str, Any]:
    shown = ("name", "kind", "state", "depth", "done", "total", "error", "created_at", "search")
    return {"number": row.pk, **{name: getattr(row, name) for name in shown}}


def send_text(lines: Any, name: str) -> StreamingHttpResponse:
    # A run may have millions of lines: they are sent as they are read.
    response = StreamingHttpResponse(lines, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
