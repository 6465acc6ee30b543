"""Pages of syntheses: the list and the start, one with its bundles, a bundle, its file, and acts on it."""

from pathlib import Path
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from benchmark.models import Synthesis
from benchmark.synthesis import files, importing, lifecycle, page
from benchmark.synthesis.forms import FORMS, SeedsForm
from benchmark.systems.chosen import is_unattended
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from judges.campaigns.job_controls import LimitsForm, control_job


@action("admin")
@require_http_methods(["GET", "POST"])
def syntheses(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """All syntheses and the form of a new one; what it will ask and cost; then one that waits for a worker."""
    given = request.POST if request.method == "POST" else None
    kind = (request.GET if given is None else given).get("type") or Synthesis.Product.BUNDLES.value
    if kind not in FORMS:
        raise Http404(_("Unknown kind of synthesis."))
    form = FORMS[kind](given, collection=scope.collection)
    if given is not None and form.is_valid():
        try:
            if "confirm" in given:
                return _start_synthesis(request, scope, form)
            context: dict[str, Any] = {"scope": scope, "form": form}
            context["estimate"] = lifecycle.estimate_cost(scope.collection, form.options())
            context["hidden"] = [(field.html_name, field.label, field.value()) for field in form]
            return render(request, "benchmark/synthesis_confirm.html", context)
        except BadInput as error:
            form.add_error(None, str(error))
    found = list(page.list_syntheses(scope.collection))
    moving = any(not one.is_over for one in found)
    return answer_page(
        request,
        scope,
        "benchmark/syntheses.html",
        {
            "syntheses": found,
            "form": form,
            "kinds": Synthesis.Product.choices,
            "moving": moving,
            "unattended": is_unattended(*found),
        },
        tables=[page.syntheses_table(found)] if "table" in request.GET else [],
        news="benchmark/_syntheses.html",
        is_over=not moving,
        status=422 if form.is_bound else 200,
    )


def _start_synthesis(request: HttpRequest, scope: AccessScope, form: SeedsForm) -> HttpResponse:
    with transaction.atomic():
        made = lifecycle.start_or_join(collection=scope.collection, options=form.options(), by=scope.user.username)
        record_act(scope, "synthesis.started", synthesis=made.number)
    return redirect("synthesis", scope.collection.name, made.number)


def _get_synthesis(scope: AccessScope, synthesis: int) -> Synthesis:
    rows = Synthesis.objects.select_related("collection")
    return numbered_or_404(rows, scope.collection, synthesis, _("Synthesis not found."))


@action("admin")
@require_GET
def synthesis(request: HttpRequest, scope: AccessScope, synthesis: int) -> HttpResponse:
    """Show a synthesis: progress, bundles, what was dropped and why, and the cost."""
    one = _get_synthesis(scope, synthesis)
    found = page.show_synthesis(one, request.GET.get("page"))
    wanted = page.synthesis_tables(found) if "table" in request.GET else []
    limits = LimitsForm(initial=one.options)
    return answer_page(
        request,
        scope,
        "benchmark/synthesis.html",
        {
            "found": found,
            "synthesis": one,
            "training_set": Path(one.options.get("source") or "").name,
            "limits": limits,
            "unattended": is_unattended(one),
        },
        tables=wanted,
        news="benchmark/_synthesis.html",
        is_over=one.is_over,
    )


@action("admin")
@require_GET
def synthetic_bundle(request: HttpRequest, scope: AccessScope, synthesis: int, place: int) -> HttpResponse:
    """Show one bundle: persona, query, answer, aspects, and every passage with its plan."""
    one = _get_synthesis(scope, synthesis)
    row = get_object_or_404(page.made_rows(one), place=place, synthesis__kind=Synthesis.Product.BUNDLES)
    context = {"scope": scope, "synthesis": one, "row": row, "bundle": row.bundle}
    return render(request, "benchmark/synthetic_bundle.html", context)


@action("admin")
@require_GET
def synthesis_file(request: HttpRequest, scope: AccessScope, synthesis: int) -> HttpResponse:
    """The bundles that there are so far, as JSON lines."""
    one = _get_synthesis(scope, synthesis)
    name = f"synthetic-{one.number}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    text = files.lines_of(files.read_bundles(one))
    return HttpResponse(text, content_type="application/jsonl; charset=utf-8", headers=headers)


@action("admin")
@require_POST
def control_synthesis(request: HttpRequest, scope: AccessScope, synthesis: int, act: str) -> HttpResponse:
    """Cancel a synthesis, resume it, or import what there is."""
    one = _get_synthesis(scope, synthesis)
    # Queries without passages are in the collection as soon as they are written.
    if act == "import" and one.kind == Synthesis.Product.BUNDLES:
        try:
            with transaction.atomic():
                _import(request, scope, one)
        except BadInput as error:
            messages.error(request, _("No changes made: %(error)s.") % {"error": error})
    else:
        acts = {"cancel": lifecycle.cancel_synthesis, "go-on": lifecycle.go_on}
        limits = lifecycle.set_limits
        control_job(
            request, scope, one, act, acts=acts, set_limits=limits, audit="synthesis.control", synthesis=one.number
        )
    return redirect("synthesis", scope.collection.name, one.number)


def _import(request: HttpRequest, scope: AccessScope, one: Synthesis) -> None:
    new = importing.import_bundles(one)
    record_act(scope, "synthesis.imported", synthesis=one.number, new=new)
    told = {name: f"{count:,}" for name, count in new.items()}
    messages.success(
        request,
        _("Added, all marked synthetic: %(queries)s queries, %(documents)s documents, %(pairs)s pairs to judge.")
        % told,
    )
