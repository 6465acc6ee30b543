"""Pages of agents: their table, traces, reference answers, and the forms that start their jobs."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from benchmark.agents import exchange, grading, jobs, references, suites, trace_figures
from benchmark.agents.board import build_board
from benchmark.agents.jobs import AGENTS
from benchmark.agents.protocol import ADAPTIVE, FIXED
from benchmark.models import AgentJob, ReferenceAnswer, Trace
from benchmark.suites.groups import collections_of
from benchmark.suites.views import get_suite
from corpus.access import AccessScope, AccessSiteScope, action
from corpus.chart_downloads import answer_page, send_file
from corpus.errors import BadInput
from judges.model_jobs.pages import form_page, is_unattended, with_limits

SHOWN = 100


@action("admin")
@require_GET
def agents(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the newest search's table and its progress, which HTMX polls."""
    protocol = request.GET.get("protocol", "")
    only = {"options__protocol": protocol} if protocol in (FIXED, ADAPTIVE) else {}
    job = jobs.newest_job(scope.collection, AgentJob.Kind.SEARCH, **only)
    if job is None:
        return render(request, "benchmark/agents/empty.html", {"scope": scope, "protocol": protocol})
    board = build_board(job)
    shown_jobs = [job, board.grading] if board.grading else [job]
    context = {
        "board": board,
        "protocol": job.options["protocol"],
        "jobs": with_limits(job for job in shown_jobs if job.state != AgentJob.READY),
        "unattended": is_unattended(*shown_jobs),
        "references": jobs.newest_job(scope.collection, AgentJob.Kind.REFERENCE),
    }
    news: dict[str, Any] = {"news": "benchmark/agents/_board.html", "is_over": all(job.is_over for job in shown_jobs)}
    return answer_page(request, scope, "benchmark/agents/board.html", context, tables=[board.table], **news)


@action("admin")
@require_http_methods(["GET", "POST"])
def start_agents(request: HttpRequest, scope: AccessScope, work: str) -> HttpResponse:
    """Show the form of a kind of job and its estimated cost; then queue the job."""
    if work not in jobs.KINDS:
        raise Http404(_("Unknown type of job."))
    initial = {name: value for name, value in request.GET.items() if name == "protocol"}
    return form_page(request, scope, jobs.kind_named(work), **initial)


@action("admin")
@require_GET
def agent_traces(request: HttpRequest, scope: AccessScope, agent_job: int) -> HttpResponse:
    """Show the figures of all traces of a job, and a list of the traces."""
    job = AGENTS.find(scope.collection, agent_job)
    if job.kind != AgentJob.Kind.SEARCH:
        raise Http404(AGENTS.missing)
    summary = trace_figures.summarise_traces(job)
    rows = Trace.objects.filter(job=job).select_related("query").order_by("query", "retriever", "agent")
    context = {"job": job, "summary": summary, "traces": rows[:SHOWN], "count": rows.count()}
    page = "benchmark/agents/traces.html"
    return answer_page(request, scope, page, context, charts=[summary.chart], tables=summary.tables)


@action("admin")
@require_GET
def agent_trace(request: HttpRequest, scope: AccessScope, trace: int) -> HttpResponse:
    """Show an agent's searches and answers for one query, with the grades of its answers."""
    rows = Trace.objects.select_related("job__collection", "query")
    trace_row = get_object_or_404(rows, pk=trace, job__collection=scope.collection)
    context = {"scope": scope, "trace": trace_row, "shown": trace_figures.show_trace(trace_row)}
    return render(request, "benchmark/agents/trace.html", context)


@action("admin")
@require_GET
def agent_file(request: HttpRequest, scope: AccessScope, agent_job: int, file: str) -> HttpResponseBase:
    """Send traces, judgments or reference answers as JSON Lines."""
    job = AGENTS.find(scope.collection, agent_job)
    newest_grading = grading.newest_grading(job)
    if file == "traces" and job.kind == AgentJob.Kind.SEARCH:
        rows = exchange.describe_traces(job)
    elif file == "judgments" and newest_grading is not None:
        rows = exchange.describe_judgments(newest_grading)
    elif file == "references" and job.kind == AgentJob.Kind.REFERENCE:
        rows = iter(references.describe_references(job))
    else:
        raise Http404(_("Unknown file."))
    response = StreamingHttpResponse(exchange.as_lines(rows), content_type="application/x-ndjson; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{file}.jsonl"'
    return response


@action("admin")
@require_GET
def reference_answers(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the newest reference answers and their progress, which HTMX polls."""
    job = jobs.newest_job(scope.collection, AgentJob.Kind.REFERENCE)
    rows = ReferenceAnswer.objects.filter(job=job).select_related("query").order_by("query__external_id")
    context = {
        "job": job,
        "answers": rows[:SHOWN] if job else [],
        "count": rows.count() if job else 0,
        "jobs": with_limits([job] if job and job.state != AgentJob.READY else []),
        "unattended": is_unattended(job),
        "passages": bool(references.queries_with_passages(scope.collection)),
    }
    news: dict[str, Any] = {"news": "benchmark/agents/_references.html", "is_over": job is None or job.is_over}
    return answer_page(request, scope, "benchmark/agents/references.html", context, **news)


@action("site")
@require_GET
def suite_agents(request: HttpRequest, scope: AccessSiteScope, suite: int) -> HttpResponse:
    """Show unweighted means over a suite: of its members' newest searches by a protocol."""
    suite_row = get_suite(scope, suite)
    protocol = ADAPTIVE if request.GET.get("protocol") == ADAPTIVE else FIXED
    members = collections_of(suite_row)
    searches = [jobs.newest_job(collection, AgentJob.Kind.SEARCH, options__protocol=protocol) for collection in members]
    missing = [collection for collection, job in zip(members, searches, strict=True) if job is None]
    context: dict[str, Any] = {
        "scope": scope,
        "suite": suite_row,
        "protocol": protocol,
        "missing": missing,
        "board": None,
    }
    if not missing:
        try:
            context["board"] = suites.suite_board(suite_row, [build_board(job) for job in searches if job is not None])
        except BadInput as error:
            context["problem"] = str(error)
    tables = [context["board"].table] if context["board"] else []
    if (file := send_file(request, [], tables)) is not None:
        return file
    return render(request, "benchmark/agents/suite.html", context)
