"""Hole filling: what could change the order, what filling would come to, its start, its progress, and its end."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from benchmark.bounds.page import bounds_context
from benchmark.forms import PEOPLE, HoleFillingForm, SendForm
from benchmark.hole_filling import page as pages
from benchmark.hole_filling import planning, stages, starting
from benchmark.models import Filling, Run
from benchmark.qrels import versions
from benchmark.report import tables
from benchmark.systems import chosen
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from judges.campaigns.selectors import with_campaign_number

SHOWN = 30


@action("admin")
@require_http_methods(["GET", "POST"])
def fillings(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Ranking uncertainty, the fillings and the form of a new one; its estimate; started when that was confirmed."""
    form = _filling_form(request, scope) if request.method == "POST" else None
    if form is not None and form.is_valid():
        try:
            confirmed = "confirm" in request.POST
            return _start_filling(scope, form) if confirmed else _render_confirmation(request, scope, form)
        except BadInput as error:
            form.add_error(None, str(error))
    return _render_page(request, scope, form=form)


def _filling_form(request: HttpRequest | None, scope: AccessScope) -> HoleFillingForm:
    runs, found = chosen.runs_of(scope.collection), chosen.versions_of(scope.collection)
    return HoleFillingForm(
        request.POST if request is not None else None, collection=scope.collection, runs=runs, versions=found
    )


def _render_page(
    request: HttpRequest, scope: AccessScope, *, form: HoleFillingForm | None = None, send: SendForm | None = None
) -> HttpResponse:
    """The page with its two forms; one that was sent keeps what was typed."""
    bounds = bounds_context(scope.collection, chosen.runs_of(scope.collection))
    rows = Filling.objects.filter(collection=scope.collection).select_related("before", "after")
    rows = rows.defer("pairs").order_by("-pk")
    stored, shown = bounds["stored"], bounds["shown"]
    files: dict[str, Any] = {"charts": [shown["chart"]], "tables": shown["tables"]} if shown else {"tables": []}
    if "table" in request.GET:
        files["tables"] = [*files["tables"], tables.fillings_table(rows)]  # all rows: read only to be saved
    context = {
        **bounds,
        "fill": form or _filling_form(None, scope),
        "form": send or SendForm(collection=scope.collection, auto_id="send_%s"),
        "fillings": rows[:SHOWN],
    }
    news: dict[str, Any] = {"news": "benchmark/_bounds.html", "is_over": stored is None or stored.report.is_over}
    status = 422 if form or send else 200
    return answer_page(request, scope, "benchmark/hole_fillings.html", context, **files, **news, status=status)


def _render_confirmation(request: HttpRequest, scope: AccessScope, form: HoleFillingForm) -> HttpResponse:
    given = form.cleaned_data
    policy: dict[str, Any] = form.asked()
    before = form.version() or versions.original_version(scope.collection, by=scope.user.username)
    where = (scope.collection, form.chosen(), given["k"], before)
    estimate = None
    if given["policy"] != PEOPLE:
        estimate = planning.estimate_cost(*where, policy["policy"], policy["panel"], policy["filters"])
    context = {
        "scope": scope,
        "form": form,
        "preview": planning.preview_filling(*where),
        "estimate": estimate,
        "people": given["policy"] == PEOPLE,
        "filters": policy["filters"],
        "hidden": [(name, value) for name in form.fields for value in request.POST.getlist(name) if value],
    }
    return render(request, "benchmark/fill_confirm.html", context)


def _start_filling(scope: AccessScope, form: HoleFillingForm) -> HttpResponse:
    given = form.cleaned_data
    with transaction.atomic():
        found = starting.start_filling(
            collection=scope.collection,
            runs=form.chosen(),
            depth=given["k"],
            before=form.version(),
            by=scope.user.username,
            later=True,
            **form.asked(),
        )
        record_act(
            scope, "filling.started", filling=found.number, policy=given["policy"], pairs=found.funnel["candidates"]
        )
    return redirect("hole_filling", scope.collection.name, found.number)


@action("admin")
@require_GET
def filling(request: HttpRequest, scope: AccessScope, filling: int) -> HttpResponse:
    """Show one filling: its funnel, who is waited for, and the outcome. HTMX polls it."""
    rows = Filling.objects.select_related("before", "after", "collection").defer("pairs")
    found = numbered_or_404(with_campaign_number(rows), scope.collection, filling, _("Hole filling not found."))
    funnel = stages.current_funnel(found).document
    chart, table = pages.funnel_chart(funnel, found), pages.funnel_table(funnel)
    context = {
        "filling": found,
        "runs": found.runs.order_by("name"),
        "funnel": funnel,
        "asked": pages.describe_judges(found),
        "steps": pages.funnel_steps(funnel),
        "chart": chart,
        "unattended": chosen.is_unattended(found),
    }
    news: dict[str, Any] = {"news": "benchmark/_hole_filling.html", "is_over": found.is_over}
    files: dict[str, Any] = {"charts": [chart], "tables": [table]}
    return answer_page(request, scope, "benchmark/hole_filling.html", context, **files, **news)


@action("admin")
@require_POST
def control_filling(request: HttpRequest, scope: AccessScope, filling: int, act: str) -> HttpResponse:
    """Finish a filling with what is settled by now (a large one by a worker), or cancel it."""
    found = numbered_or_404(Filling.objects.defer("pairs"), scope.collection, filling, _("Hole filling not found."))
    if act not in ("finish", "cancel"):
        raise Http404(_("Unknown action."))
    try:
        with transaction.atomic():
            if act == "cancel":
                stages.cancel_filling(found)
            # Who asks for it once more ends nothing.
            if act == "cancel" or stages.ask_to_finish(found, by=scope.user.username):
                record_act(scope, "filling.ended", filling=found.number, what=act)
    except BadInput as error:
        messages.error(request, _("No changes made: %(error)s.") % {"error": error})
    return redirect("hole_filling", scope.collection.name, found.number)


@action("admin")
@require_POST
def send_pairs(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Send the pairs that could settle most to people, or to a policy's judges."""
    form = SendForm(request.POST, collection=scope.collection, auto_id="send_%s")
    stored = chosen.stored_report(chosen.newest_report(scope.collection, compares=False), [])
    if stored is None or not stored.is_ready:
        messages.error(request, _("Compute the ranking uncertainty first."))
        return redirect("hole_fillings", scope.collection.name)
    if not form.is_valid():
        return _render_page(request, scope, send=form)
    try:
        with transaction.atomic():
            found = starting.send_pairs(
                collection=scope.collection,
                runs=list(Run.objects.filter(pk__in=stored.report.options["runs"], is_deleted=False)),
                before=stored.report.before,
                k=stored.k,
                first=form.cleaned_data["first"],
                by=scope.user.username,
                **form.asked(),
            )
            what = {"policy": form.cleaned_data["policy"], "pairs": form.cleaned_data["first"]}
            record_act(scope, "filling.started", filling=found.number, **what)
    except BadInput as error:
        form.add_error(None, str(error))
        return _render_page(request, scope, send=form)
    return redirect("hole_filling", scope.collection.name, found.number)
