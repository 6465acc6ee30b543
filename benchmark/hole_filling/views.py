"""Filling holes: what it would come to, its start, its progress, and its end."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from benchmark.forms import PEOPLE, HoleFillingForm
from benchmark.hole_filling import page as pages
from benchmark.hole_filling import planning, stages, starting
from benchmark.models import Filling
from benchmark.qrels import versions
from benchmark.report import tables
from benchmark.systems import chosen
from corpus.access import AccessScope, action
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput

SHOWN = 30


@action("admin")
@require_http_methods(["GET", "POST"])
def fillings(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """All fillings and the form of a new one; then what it will come to; started when that was confirmed."""
    form = HoleFillingForm(
        request.POST if request.method == "POST" else None,
        collection=scope.collection,
        runs=chosen.runs_of(scope.collection),
        versions=chosen.versions_of(scope.collection),
    )
    if request.method == "POST" and form.is_valid():
        try:
            confirmed = "confirm" in request.POST
            return _start_filling(scope, form) if confirmed else _render_confirmation(request, scope, form)
        except BadInput as error:
            form.add_error(None, str(error))
    rows = Filling.objects.filter(collection=scope.collection).select_related("before", "after")
    rows = rows.defer("pairs").order_by("-pk")
    files = [tables.fillings_table(rows)] if "table" in request.GET else []  # all rows: read only to be saved
    context, status = {"form": form, "fillings": rows[:SHOWN]}, 422 if form.is_bound else 200
    return tables.answer_page(request, scope, "benchmark/hole_fillings.html", context, tables=files, status=status)


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
        "section": "benchmark",
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
        record_act(scope, "filling.started", filling=found.pk, policy=given["policy"], pairs=found.funnel["candidates"])
    return redirect("hole_filling", scope.collection.name, found.pk)


@action("admin")
@require_GET
def filling(request: HttpRequest, scope: AccessScope, filling: int) -> HttpResponse:
    """One filling: its funnel, who is waited for, and what came of it. HTMX asks for news."""
    rows = Filling.objects.select_related("before", "after", "collection").defer("pairs")
    found = get_object_or_404(rows, pk=filling, collection=scope.collection)
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
    return tables.answer_page(request, scope, "benchmark/hole_filling.html", context, **files, **news)


@action("admin")
@require_POST
def control_filling(request: HttpRequest, scope: AccessScope, filling: int, act: str) -> HttpResponse:
    """Finish a filling with what is settled by now (a large one by a worker), or cancel it."""
    found = get_object_or_404(Filling.objects.defer("pairs"), pk=filling, collection=scope.collection)
    if act not in ("finish", "cancel"):
        raise Http404(_("No such act."))
    try:
        with transaction.atomic():
            if act == "finish":
                stages.ask_to_finish(found, by=scope.user.username)
            else:
                stages.cancel_filling(found)
            record_act(scope, "filling.ended", filling=found.pk, what=act)
    except BadInput as error:
        messages.error(request, _("Nothing was changed: %(error)s.") % {"error": error})
    return redirect("hole_filling", scope.collection.name, found.pk)
