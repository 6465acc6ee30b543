"""Pages of syntheses: the list with its form, one synthesis, one bundle, the file, and the import."""

from pathlib import Path
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from actions.pages import form_of
from benchmark.models import Synthesis
from benchmark.synthesis import files, importing, page
from benchmark.synthesis.lifecycle import STARTS, SYNTHESES
from benchmark.synthesis.queries import PRESENT
from corpus.access import AccessScope, action
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput
from judges.model_jobs.pages import job_page, start_page


@action("admin")
@require_http_methods(["GET", "POST"])
def syntheses(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show all syntheses and the form of a new one with its estimate; then queue it."""
    kind = (request.POST or request.GET).get("type") or Synthesis.Product.BUNDLES.value
    if kind not in STARTS:
        raise Http404(_("Unknown kind of synthesis."))
    form: Any = form_of(STARTS[kind], request, **SYNTHESES.shown_in(scope.collection))
    form.kind, form.lacks_seeds = kind, "data" in form.fields and not form.fields["data"].choices
    rows = list(
        Synthesis.objects.filter(collection=scope.collection)
        .annotate(
            made=Count("bundles", filter=Q(bundles__bundle__isnull=False)),
            dropped=Count("bundles", filter=~Q(bundles__step="") & ~Q(bundles__reason=PRESENT)),
        )
        .order_by("-pk")
    )
    names = "benchmark/syntheses.html", "benchmark/_syntheses.html"
    context = {"kinds": Synthesis.Product.choices}
    files: dict[str, Any] = {"tables": [page.syntheses_table(rows)], "start": STARTS[kind]}
    return start_page(request, scope, SYNTHESES, form, *names, rows, context, **files)


@action("admin")
@require_GET
def synthesis(request: HttpRequest, scope: AccessScope, synthesis: int) -> HttpResponse:
    """Show a synthesis: its progress, bundles, dropped seeds and cost."""
    synthesis_row = SYNTHESES.find(scope.collection, synthesis)
    shown_page = page.show_synthesis(synthesis_row, request.GET.get("page"))
    tables = page.synthesis_tables(shown_page) if "table" in request.GET else []
    context = {
        "found": shown_page,
        "synthesis": synthesis_row,
        "training_set": Path(synthesis_row.options.get("source") or "").name,
    }
    names = "benchmark/synthesis.html", "benchmark/_synthesis.html"
    return job_page(request, scope, synthesis_row, *names, context, tables=tables)


@action("admin")
@require_GET
def synthetic_bundle(request: HttpRequest, scope: AccessScope, synthesis: int, place: int) -> HttpResponse:
    """Show one bundle: its persona, query, answer and aspects, and every passage with its plan."""
    synthesis_row = SYNTHESES.find(scope.collection, synthesis)
    row = get_object_or_404(page.made_rows(synthesis_row), place=place, synthesis__kind=Synthesis.Product.BUNDLES)
    context = {"scope": scope, "synthesis": synthesis_row, "row": row, "bundle": row.bundle}
    return render(request, "benchmark/synthetic_bundle.html", context)


@action("admin")
@require_GET
def synthesis_file(request: HttpRequest, scope: AccessScope, synthesis: int) -> HttpResponse:
    """Send the bundles written so far, as JSON lines."""
    synthesis_row = SYNTHESES.find(scope.collection, synthesis)
    name = f"synthetic-{synthesis_row.number}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    text = files.lines_of(files.read_bundles(synthesis_row))
    return HttpResponse(text, content_type="application/jsonl; charset=utf-8", headers=headers)


@action("admin")
@require_POST
def import_synthesis(request: HttpRequest, scope: AccessScope, synthesis: int) -> HttpResponse:
    """Import the bundles written so far; queries without passages are imported as they are written."""
    synthesis_row = SYNTHESES.find(scope.collection, synthesis)
    if synthesis_row.kind != Synthesis.Product.BUNDLES:
        raise Http404(_("Unknown action."))
    try:
        with transaction.atomic():
            new = importing.import_bundles(synthesis_row)
            record_act(scope, "synthesis.imported", synthesis=synthesis_row.number, new=new)
    except BadInput as error:
        messages.error(request, _("No changes made: %(error)s.") % {"error": error})
    else:
        message = _(
            "Added, all marked synthetic: %(queries)s queries, %(documents)s documents, %(pairs)s pairs to judge."
        )
        messages.success(request, message % {name: f"{count:,}" for name, count in new.items()})
    return redirect(SYNTHESES.address_of(synthesis_row))
