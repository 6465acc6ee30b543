"""Pages of syntheses: list and start, one with bundles, a bundle, its file, acts."""

from pathlib import Path
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from actions.pages import form_of
from benchmark.models import Synthesis
from benchmark.synthesis import files, importing, page
from benchmark.synthesis.lifecycle import STARTS, SYNTHESES
from corpus.access import AccessScope, action
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput
from judges.model_jobs.pages import job_page, start_page


@action("admin")
@require_http_methods(["GET", "POST"])
def syntheses(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """All syntheses and the form of a new one; its estimate; one that waits."""
    kind = (request.POST or request.GET).get("type") or Synthesis.Product.BUNDLES.value
    if kind not in STARTS:
        raise Http404(_("Unknown kind of synthesis."))
    form: Any = form_of(STARTS[kind], request, **SYNTHESES.shown_in(scope.collection))
    form.kind, form.lacks_seeds = kind, "data" in form.fields and not form.fields["data"].choices
    rows = list(page.list_syntheses(scope.collection))
    names = "benchmark/syntheses.html", "benchmark/_syntheses.html"
    context = {"kinds": Synthesis.Product.choices}
    files: dict[str, Any] = {"tables": [page.syntheses_table(rows)], "start": STARTS[kind]}
    return start_page(request, scope, SYNTHESES, form, *names, rows, context, **files)


@action("admin")
@require_GET
def synthesis(request: HttpRequest, scope: AccessScope, synthesis: int) -> HttpResponse:
    """Show a synthesis: progress, bundles, what was dropped and why, and the cost."""
    one = SYNTHESES.find(scope.collection, synthesis)
    found = page.show_synthesis(one, request.GET.get("page"))
    wanted = page.synthesis_tables(found) if "table" in request.GET else []
    context = {"found": found, "synthesis": one, "training_set": Path(one.options.get("source") or "").name}
    names = "benchmark/synthesis.html", "benchmark/_synthesis.html"
    return job_page(request, scope, one, *names, context, tables=wanted)


@action("admin")
@require_GET
def synthetic_bundle(request: HttpRequest, scope: AccessScope, synthesis: int, place: int) -> HttpResponse:
    """Show one bundle: persona, query, answer, aspects, and every passage with its plan."""
    one = SYNTHESES.find(scope.collection, synthesis)
    row = get_object_or_404(page.made_rows(one), place=place, synthesis__kind=Synthesis.Product.BUNDLES)
    context = {"scope": scope, "synthesis": one, "row": row, "bundle": row.bundle}
    return render(request, "benchmark/synthetic_bundle.html", context)


@action("admin")
@require_GET
def synthesis_file(request: HttpRequest, scope: AccessScope, synthesis: int) -> HttpResponse:
    """The bundles that there are so far, as JSON lines."""
    one = SYNTHESES.find(scope.collection, synthesis)
    name = f"synthetic-{one.number}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    text = files.lines_of(files.read_bundles(one))
    return HttpResponse(text, content_type="application/jsonl; charset=utf-8", headers=headers)


@action("admin")
@require_POST
def import_synthesis(request: HttpRequest, scope: AccessScope, synthesis: int) -> HttpResponse:
    """Import the bundles that there are. Queries without passages are in the collection as soon as they are written."""
    one = SYNTHESES.find(scope.collection, synthesis)
    if one.kind != Synthesis.Product.BUNDLES:
        raise Http404(_("Unknown action."))
    try:
        with transaction.atomic():
            new = importing.import_bundles(one)
            record_act(scope, "synthesis.imported", synthesis=one.number, new=new)
    except BadInput as error:
        messages.error(request, _("No changes made: %(error)s.") % {"error": error})
    else:
        told = _("Added, all marked synthetic: %(queries)s queries, %(documents)s documents, %(pairs)s pairs to judge.")
        messages.success(request, told % {name: f"{count:,}" for name, count in new.items()})
    return redirect(SYNTHESES.address_of(one))
