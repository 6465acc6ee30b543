"""The report of two versions of the qrels, and the leaderboard."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from benchmark.forms import FollowingForm, ReportForm
from benchmark.models import Qrels, Report, Run
from benchmark.qrels.versions import original_version
from benchmark.report import page, tables
from benchmark.report import reports as services
from benchmark.systems import chosen
from benchmark.systems.chosen import StoredReport
from corpus.access import AccessScope, action
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput


@action("admin")
@require_GET
def newest_report(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the newest report, or what it takes to have one."""
    return _render_page(request, scope, chosen.newest_report(scope.collection, compares=True))


@action("admin")
@require_GET
def report(request: HttpRequest, scope: AccessScope, report: int) -> HttpResponse:
    """Show one report; HTMX asks for it while it is worked out."""
    rows = Report.objects.select_related("before", "after", "collection")
    return _render_page(request, scope, get_object_or_404(rows, pk=report, collection=scope.collection))


def _render_page(request: HttpRequest, scope: AccessScope, found: Report | None) -> HttpResponse:
    runs, versions = chosen.runs_of(scope.collection), chosen.versions_of(scope.collection)
    stored = chosen.stored_report(found, runs)
    shown = page.show_report(stored, request.GET.get("measure", "")) if stored and stored.is_ready else None
    form = ReportForm(runs=runs, versions=versions, initial=_initial_values(found))
    context: dict[str, Any] = {"stored": stored, "shown": shown, "form": form, "versions": versions}
    context |= {"unattended": chosen.is_unattended(found), **_following_context(request, stored, runs)}
    news: dict[str, Any] = {"news": "benchmark/_report.html", "is_over": stored is None or stored.report.is_over}
    files: dict[str, Any] = {key: shown[key] for key in ("charts", "tables")} if shown else {}
    return tables.answer_page(request, scope, "benchmark/report.html", context, **files, **news)


def _following_context(request: HttpRequest, stored: StoredReport | None, runs: list[Run]) -> dict[str, object]:
    """p-MRR of the two runs that were asked about, where the later qrels are those of changed instructions."""
    asked = "changed" in request.GET
    form = FollowingForm(request.GET if asked else None, runs=runs)
    if not (asked and stored and form.is_valid()):
        return {"follow": form, "following": None}
    try:
        found = services.measure_following(*form.chosen(), stored.report.before, stored.report.after)
    except BadInput as error:
        form.add_error(None, str(error))
        return {"follow": form, "following": None}
    return {"follow": form, "following": found}


def _initial_values(found: Report | None) -> dict[str, object]:
    if found is None:
        return {}
    given = {name: found.options.get(name) for name in ("k", "aspects_k")}
    return {"before": str(found.before_id), "after": str(found.after_id), **given}


@action("admin")
@require_POST
def make_report(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """A report of what was chosen; of versions `one` and `other`, by number; or of the first and the newest version.

    `safety`: of the newest alone.
    """
    # A form is bound only where a reader filled it in; the one-click buttons of other pages send no `before`.
    runs, versions = chosen.runs_of(scope.collection), chosen.versions_of(scope.collection)
    form = ReportForm(request.POST if "before" in request.POST else None, runs=runs, versions=versions)
    if not form.by_key:
        messages.error(request, _("There is no run yet: add one first."))
        return redirect("runs", scope.collection.name)
    if not form.is_bound or form.is_valid():
        try:
            return _request_report(request, scope, form)
        except BadInput as error:
            if not form.is_bound:
                messages.error(request, str(error))
                return redirect("benchmark_report", scope.collection.name)
            form.add_error(None, str(error))
    context = {"scope": scope, "section": "benchmark", "stored": None, "shown": None}
    context |= {"form": form, "versions": versions}
    return render(request, "benchmark/report.html", context, status=422)


@transaction.atomic
def _request_report(request: HttpRequest, scope: AccessScope, form: ReportForm) -> HttpResponse:
    aspects_k = form.cleaned_data["aspects_k"] if form.is_bound else None
    if form.is_bound:
        (before, after), runs, k = form.pair(), form.chosen(), form.cleaned_data["k"]
    else:
        runs = list(form.by_key.values())
        k = min(chosen.K, *(run.depth or chosen.K for run in runs))
        before, after = _chosen_versions(request, scope, form)
    found = services.request_report(
        scope.collection, before, after, runs, k=k, by=scope.user.username, aspects_k=aspects_k
    )
    record_act(scope, "report.asked", report=found.pk, before=before.number, after=after.number, k=k)
    if before == after:
        return redirect("ranking_bounds", scope.collection.name)
    return redirect("report", scope.collection.name, found.pk)


def _chosen_versions(request: HttpRequest, scope: AccessScope, form: ReportForm) -> tuple[Qrels, Qrels]:
    """Those that the page shows, else the first and the newest; with `safety` the newest alone."""
    if "one" in request.POST:
        by_number = {str(version.number): version for version in form.versions.values()}
        one, other = (by_number.get(request.POST.get(name, "")) for name in ("one", "other"))
        if one is None or other is None:
            raise Http404(_("Choose two versions."))
        return one, other
    versions = list(form.versions.values()) or [original_version(scope.collection, by=scope.user.username)]
    return versions[-1 if "safety" in request.POST else 0], versions[-1]


@action("admin")
@require_GET
def leaderboard(request: HttpRequest, scope: AccessScope, report: int) -> HttpResponse:
    """Show the systems by a measure, with letters: who shares one is not told apart."""
    rows = Report.objects.select_related("before", "after", "collection")
    found = get_object_or_404(rows, pk=report, collection=scope.collection)
    stored = chosen.stored_report(found, chosen.runs_of(scope.collection))
    if stored is None or not stored.is_ready:
        raise Http404(_("This report is not there yet."))
    board = page.build_leaderboard(stored, request.GET.get("sort", ""), request.GET.get("of", ""))
    context = {"stored": stored, "board": board}
    return tables.answer_page(request, scope, "benchmark/leaderboard.html", context, tables=[board["table"]])
