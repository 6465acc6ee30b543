"""Runs: the list, upload, making, TREC file, cancel, go on, delete."""

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from benchmark.forms import MakeForm, UploadForm
from benchmark.models import Run
from benchmark.report import tables
from benchmark.runs import importing, rankings
from benchmark.runs.builders import RUNS
from benchmark.runs.builders import delete_run as delete
from benchmark.systems import chosen
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput
from jobs.models import JobState
from judges.model_jobs.pages import answer_start, is_unattended

KINDS = [(kind, kind.label) for kind in MakeForm.FIELDS]


@action("admin")
@require_GET
def runs(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """All runs, the upload, and what can be made. HTMX asks for the list alone while something is made."""
    return _render_page(request, scope, UploadForm())


def _render_page(
    request: HttpRequest, scope: AccessScope, form: UploadForm, problems: list[str] | None = None
) -> HttpResponse:
    found = chosen.runs_of(scope.collection)
    moving, unattended = any(not run.is_over for run in found), is_unattended(*found)
    context = {"runs": found, "moving": moving, "unattended": unattended, "form": form}
    context["problems"] = problems or []
    return answer_page(
        request,
        scope,
        "benchmark/runs.html",
        context,
        tables=[tables.runs_table(found)],
        news="benchmark/_runs.html",
        is_over=not moving,
        status=422 if form.is_bound else 200,
    )


@action("admin")
@require_POST
def upload_runs(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Import uploaded files as runs, all or none; every problem is listed with its line."""
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _render_page(request, scope, form)
    named = form.named()
    try:
        with importing.saved_uploads([file for _name, file in named]) as paths, transaction.atomic():
            if len({name for name, _file in named}) < len(named):
                raise BadInput(_("Two files have the same name: each run needs its own name"))
            files = {name: path for (name, _file), path in zip(named, paths, strict=True)}
            given = {name: form.cleaned_data[name] for name in ("instruction", "skip_unknown", "keep_self")}
            found = importing.import_runs(scope.collection, files, scope.user.username, **given)
            record_act(scope, "runs.imported", runs=[run.name for run, _told in found])
    except BadInput as error:
        return _render_page(request, scope, form, str(error).split("; "))
    lines = sum(told["lines"] for _run, told in found)
    words = ngettext(
        "%(count)s run imported (%(lines)s lines).", "%(count)s runs imported (%(lines)s lines).", len(found)
    )
    messages.success(request, words % {"count": len(found), "lines": f"{lines:,}"})
    return redirect("runs", scope.collection.name)


@action("admin")
@require_http_methods(["GET", "POST"])
def make_run(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """The form of a type; what it will ask of models and cost; then a run that waits for a worker.

    HTMX asks for the fields of another type with what was typed in those that both have.
    """
    kind = request.GET.get("type") or Run.Kind.BM25
    if kind not in MakeForm.FIELDS:
        raise Http404(_("Unknown type of run."))
    typed = {name: request.GET[name] for name in ("name", "depth") if request.GET.get(name)}
    # A name that is another type's is no name that somebody typed.
    if typed.get("name") in MakeForm.FIELDS:
        del typed["name"]
    given = request.POST if request.method == "POST" else None
    form = MakeForm(given, initial=typed, collection=scope.collection, kind=kind)
    if (answer := answer_start(request, scope, RUNS, form)) is not None:
        return answer
    context = {"scope": scope, "form": form, "kind": Run.Kind(kind), "kinds": KINDS}
    page = "benchmark/_make.html" if request.headers.get("HX-Request") else "benchmark/make.html"
    return render(request, page, context, status=422 if form.is_bound else 200)


@action("admin")
@require_GET
def run_file(request: HttpRequest, scope: AccessScope, run: int) -> HttpResponseBase:
    """The run as a TREC file, streamed."""
    found = RUNS.find(scope.collection, run)
    if found.state != JobState.READY:
        raise Http404(_("This run is not ready yet."))
    response = StreamingHttpResponse(rankings.write_trec(found), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{found.name}.run"'
    return response


@action("admin")
@require_http_methods(["GET", "POST"])
def delete_run(request: HttpRequest, scope: AccessScope, run: int) -> HttpResponse:
    """Delete a run: GET asks for confirmation, POST removes it from every table and frees its name."""
    found = RUNS.find(scope.collection, run)
    if request.method == "GET":
        context = {"scope": scope, "run": found}
        return render(request, "benchmark/delete_run.html", context)
    with transaction.atomic():
        delete(found)
        record_act(scope, "run.control", run=found.name, what="delete")
    messages.success(request, _("Run %(name)s deleted.") % {"name": found.name})
    return redirect("runs", scope.collection.name)
