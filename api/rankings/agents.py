"""Agents: searches, their grading, reference answers: cost, start, table, traces, files, end."""

from typing import Any, Literal

from django.db import transaction
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.audit_log.recording import record
from api.authentication import may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.problems import validate_form
from api.routes.model_jobs import (
    JobAct,
    JobEstimateOut,
    LimitsIn,
    ModelJobOut,
    control_model_job,
    show_estimate,
    show_model_job,
)
from api.routes.pages import Cursor, Limit, Page, page_of
from benchmark.agents import exchange, grading, jobs, references
from benchmark.agents.board import build_board
from benchmark.agents.forms import FORMS, AgentJobForm
from benchmark.models import AgentJob, Trace
from corpus.models import Collection
from corpus.numbered import numbered_or_404
from judges.campaigns.selectors import with_campaign_number

router = Router(tags=["agents"])
MANAGE = AccessToken.TokenScope.MANAGE
LINES: dict[str, Any] = {
    "responses": {
        200: {"description": "The file.", "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
    }
}


class AgentJobIn(LimitsIn):
    """Agents search, a judge grades their answers, or a writer writes reference answers."""

    kind: Literal["search", "grade", "reference"] = "search"
    retrievers: list[str] = Field(["bm25"], max_length=100, description="Of a search: bm25, and names of runs.")
    agents: list[str] = Field([], max_length=100, description="Of a search: models.")
    protocol: Literal["fixed", "adaptive"] = Field("fixed", description="Of a search, or whose answers are graded.")
    tokenizer: str = Field(
        "", max_length=200, description="Of a search: the base model whose tokenizer cuts documents; blank: none."
    )
    halves: Literal["up", "even"] = Field("up", description="Of grades: where halves of the completeness go.")
    judge: str = Field("", max_length=100, description="Of the others: who grades, or who writes.")


class AgentJobOut(ModelJobOut):
    """A job with agents."""

    kind: str = Field(description="search, grade or reference.")
    graded: int | None = Field(description="Of a grading: the number of the search.")
    protocol: str


class AgentBoardOut(Schema):
    """Retrievers by agents, with what their searches and answers come to: docs/agents.md."""

    document: dict[str, Any]


class TraceOut(Schema):
    """All that one agent did with one retriever about one query."""

    number: int
    query: str
    retriever: str
    agent: str
    rounds: list[dict[str, Any]]
    answers: list[dict[str, Any]]
    stop: str
    searches: int


@router.get("/collections/{slug:name}/agents", auth=may("admin"), response=Page[AgentJobOut])
def list_agent_jobs(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the jobs with agents, the oldest first."""
    return page_of(_jobs(request), after, limit, _show_job)


@router.post("/collections/{slug:name}/agents/estimate", auth=may("admin"), response=JobEstimateOut)
def estimate_agents(request: HttpRequest, name: str, body: AgentJobIn) -> Any:
    """Estimate the calls and cost of a job with agents; nothing starts."""
    return show_estimate(_form_of(scope_of(request).collection, body).estimate())


@router.post("/collections/{slug:name}/agents", auth=may("admin", MANAGE), response={201: AgentJobOut})
@decorate_view(once)
def start_agents(request: HttpRequest, name: str, body: AgentJobIn) -> Any:
    """Start a job with agents, or go on with the same one; a worker does the work."""
    scope = scope_of(request)
    form = _form_of(scope.collection, body)
    with transaction.atomic():
        job = form.start(scope.user.username)
        act = "references.started" if body.kind == "reference" else "agents.started"
        record(scope, act, job=job.number, kind=body.kind)
    return Status(201, _show_job(_find_job(request, job.number)))


def _form_of(collection: Collection, body: AgentJobIn) -> AgentJobForm:
    """Fill the page's form of this kind of job. Raises ValidationError, which names wrong fields."""
    form = FORMS[body.kind](body.dict(), collection=collection)
    validate_form(form)
    return form


@router.get("/collections/{slug:name}/agents/{number}", auth=may("admin"), response=AgentJobOut)
def read_agent_job(request: HttpRequest, name: str, number: int) -> Any:
    """Read how far a job with agents is."""
    return _show_job(_find_job(request, number))


@router.get("/collections/{slug:name}/agents/{number}/board", auth=may("admin"), response=AgentBoardOut)
def read_agent_board(request: HttpRequest, name: str, number: int) -> Any:
    """Read the table of a search by agents, with its newest grading."""
    return {"document": build_board(_find_search(request, number)).document}


@router.get("/collections/{slug:name}/agents/{number}/traces", auth=may("admin"), response=Page[TraceOut])
def list_traces(request: HttpRequest, name: str, number: int, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the traces of a search by agents."""
    rows = Trace.objects.filter(job=_find_search(request, number)).select_related("query")
    return page_of(rows, after, limit, _show_trace)


@router.get(
    "/collections/{slug:name}/agents/{number}/files/{file}",
    auth=may("admin"),
    openapi_extra=LINES,
)
def read_agent_file(
    request: HttpRequest, name: str, number: int, file: Literal["traces", "judgments", "references"]
) -> Any:
    """Download traces, the judgments of their newest grading, or reference answers as JSON lines."""
    found = _find_job(request, number)
    # A search is graded as often as somebody asks; its file has the newest judgments alone.
    graded = grading.newest_grading(found)
    if file == "traces" and found.kind == AgentJob.Kind.SEARCH:
        rows = exchange.describe_traces(found)
    elif file == "judgments" and graded is not None:
        rows = exchange.describe_judgments(graded)
    elif file == "references" and found.kind == AgentJob.Kind.REFERENCE:
        rows = iter(references.describe_references(found))
    else:
        raise Http404(_("File not found."))
    headers = {"Content-Disposition": f'attachment; filename="{file}.jsonl"'}
    lines = exchange.as_lines(rows)
    return StreamingHttpResponse(lines, content_type="application/x-ndjson; charset=utf-8", headers=headers)


@router.post("/collections/{slug:name}/agents/{number}/{act}", auth=may("admin", MANAGE), response=AgentJobOut)
@decorate_view(once)
def control_agents(request: HttpRequest, name: str, number: int, act: JobAct, body: LimitsIn | None = None) -> Any:
    """Cancel a job with agents, or go on after a cancellation or a failure."""
    found = _find_job(request, number)
    control_model_job(
        request,
        found,
        act,
        body,
        acts={"cancel": jobs.cancel_job, "go-on": jobs.go_on},
        set_limits=jobs.set_limits,
        audit="agents.control",
        job=found.number,
    )
    return _show_job(found)


def _jobs(request: HttpRequest) -> Any:
    rows = AgentJob.objects.select_related("collection", "sample", "graded")
    return with_campaign_number(rows.filter(collection=scope_of(request).collection))


def _find_job(request: HttpRequest, number: int) -> AgentJob:
    missing = _("Job with agents not found.")
    found: AgentJob = numbered_or_404(_jobs(request), scope_of(request).collection, number, missing)
    return found


def _find_search(request: HttpRequest, number: int) -> AgentJob:
    rows, missing = _jobs(request).filter(kind=AgentJob.Kind.SEARCH), _("Search by agents not found.")
    found: AgentJob = numbered_or_404(rows, scope_of(request).collection, number, missing)
    return found


def _show_job(row: AgentJob) -> dict[str, Any]:
    # A grading has no protocol of its own: it grades the answers of its search.
    protocol = (row.graded or row).options.get("protocol", "")
    return {**show_model_job(row), "kind": row.kind, "graded": row.graded and row.graded.number, "protocol": protocol}


def _show_trace(row: Trace) -> dict[str, Any]:
    shown = ("retriever", "agent", "rounds", "answers", "stop", "searches")
    return {"number": row.pk, "query": row.query.external_id, **{name: getattr(row, name) for name in shown}}
