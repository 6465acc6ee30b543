"""The report of two versions of the qrels, and the leaderboard."""

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from benchmark import qrels
from benchmark.forms import ReportForm
from benchmark.models import Progress, Qrels, Report, Run
from benchmark.pages import chosen, reports
from benchmark.report import reports as services
from benchmark.views.downloads import download
from corpus.access import Scope, action
from corpus.auditing import record


@action("admin")
@require_GET
def newest(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The newest report, or what it takes to have one."""
    return _page(request, scope, chosen.newest(scope.collection, compares=True))


@action("admin")
@require_GET
def report(request: HttpRequest, scope: Scope, report: int) -> HttpResponse:
    """One report; HTMX asks for it while it is worked out."""
    rows = Report.objects.select_related("before", "after", "collection")
    return _page(request, scope, get_object_or_404(rows, pk=report, collection=scope.collection))


def _page(request: HttpRequest, scope: Scope, found: Report | None) -> HttpResponse:
    runs, versions = chosen.runs_of(scope.collection), chosen.versions_of(scope.collection)
    stored = chosen.stored(found, runs)
    shown = reports.shown(stored, request.GET.get("measure", "")) if stored and stored.is_ready else None
    if shown and (file := download(request, shown.charts, shown.tables)) is not None:
        return file
    context = {"scope": scope, "section": "benchmark", "stored": stored, "shown": shown}
    if request.headers.get("HX-Request"):
        over = stored is None or stored.report.is_over
        return render(request, "benchmark/_report.html", context, status=286 if over else 200)
    context["form"] = ReportForm(runs=runs, versions=versions, initial=_initial(found))
    context["versions"] = versions
    return render(request, "benchmark/report.html", context)


def _initial(found: Report | None) -> dict[str, object]:
    if found is None:
        return {}
    return {"before": str(found.before_id), "after": str(found.after_id), "k": found.options.get("k", chosen.K)}


@action("admin")
@require_POST
def make(request: HttpRequest, scope: Scope) -> HttpResponse:
    """A report of the versions that were chosen, or of the first and the newest; `safety`: of the newest alone."""
    runs = chosen.runs_of(scope.collection)
    ready = [run for run in runs if run.state == Progress.READY]
    if not ready:
        messages.error(request, _("There is no run yet: add one first."))
        return redirect("runs", scope.collection.name)
    form = None
    if "before" in request.POST:
        form = ReportForm(request.POST, runs=runs, versions=chosen.versions_of(scope.collection))
        if not form.is_valid():
            context = {"scope": scope, "section": "benchmark", "form": form, "versions": list(form.versions.values())}
            return render(request, "benchmark/report.html", context, status=422)
    with transaction.atomic():
        before, after = form.pair() if form else _usual(scope, safety="safety" in request.POST)
        picked: list[Run] = form.chosen() if form else ready
        k = form.cleaned_data["k"] if form else chosen.K
        found = services.ask(scope.collection, before, after, picked, k=k, by=scope.user.username)
        record(scope, "report.asked", report=found.pk, before=before.number, after=after.number, k=k)
    if before == after:
        return redirect("safety", scope.collection.name)
    return redirect("report", scope.collection.name, found.pk)


def _usual(scope: Scope, *, safety: bool) -> tuple[Qrels, Qrels]:
    """The first and the newest version; the reference grades become the first where there is none."""
    versions = chosen.versions_of(scope.collection)
    if not versions:
        versions = [qrels.original(scope.collection, by=scope.user.username)]
    return (versions[-1], versions[-1]) if safety else (versions[0], versions[-1])


@action("admin")
@require_GET
def leaderboard(request: HttpRequest, scope: Scope, report: int) -> HttpResponse:
    """Systems by a measure, with letters: who shares one is not told apart."""
    rows = Report.objects.select_related("before", "after", "collection")
    found = get_object_or_404(rows, pk=report, collection=scope.collection)
    stored = chosen.stored(found, chosen.runs_of(scope.collection))
    if stored is None or not stored.is_ready:
        raise Http404(_("This report is not there yet."))
    board = reports.board(stored, request.GET.get("sort", ""), request.GET.get("of", ""))
    if (file := download(request, [], [board.table])) is not None:
        return file
    context = {"scope": scope, "section": "benchmark", "stored": stored, "board": board}
    return render(request, "benchmark/leaderboard.html", context)
