"""Pages of lineage: where a label went, and what a model was made of."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from charts.cells import csv_line
from corpus.access import AccessScope, action, administered
from corpus.models import Collection, Pair
from judges.models import Attempt
from training.lineage import model_sources, steps
from training.lineage.held_labels import read_held
from training.models import Model

SHOWN = 100  # Changed labels on the page of a model; the file has all labels.
HEADER = ("collection", "query_id", "doc_id", "split", "grade", "origin", "grade_now", "origin_now")


@action("admin")
@require_GET
def label_lineage(request: HttpRequest, scope: AccessScope, pair: int) -> HttpResponse:
    """Show where a label went: exports, models, runs and reports."""
    rows = Pair.objects.select_related("query", "document", "collection")
    found = get_object_or_404(rows, pk=pair, collection=scope.collection)
    context = {
        "scope": scope,
        "pair": found,
        "traced": steps.trace_label(found, _list_administered(scope)),
        "attempts": Attempt.objects.filter(pair=found).count(),
    }
    return render(request, "lineage/label.html", context)


@action("admin")
@require_GET
def model_lineage(request: HttpRequest, scope: AccessScope, model: int) -> HttpResponse:
    """Show what a model is made of: campaigns, labels, exports and base models."""
    models = Model.objects.select_related("job", "collection")
    found = get_object_or_404(models, pk=model, collection=scope.collection)
    sources = model_sources.trace_sources(found)
    if (sha256 := request.GET.get("labels")) is not None:
        return _send_labels(sources, sha256)
    parts = []
    for one in sources:
        rows = read_held(one.export.export, everything=False, limit=SHOWN) if one.export else []
        # With their collections, whose scales say what the grades mean.
        homes = Collection.objects.in_bulk({row[0] for row in rows}, field_name="name")
        parts.append((one, [(homes[row[0]], *row[1:]) for row in rows]))
    traced = steps.trace_model(found, sources, _list_administered(scope))
    context = {"scope": scope, "model": found, "parts": parts, "steps": traced}
    return render(request, "lineage/model.html", context)


def _list_administered(scope: AccessScope) -> frozenset[int]:
    return frozenset(administered(scope.user).values_list("pk", flat=True))


def _send_labels(sources: list[model_sources.ModelSource], sha256: str) -> HttpResponse:
    """Send every label of one of the model's training sets, as it was and as it is. `sha256`: of its manifest."""
    record = next((one.export for one in sources if one.export and one.export.sha256 == sha256), None)
    if record is None:
        raise Http404(_("Export not found."))
    rows = read_held(record.export, everything=True)
    lines = [csv_line(HEADER), *(csv_line(["" if one is None else one for one in row[:-1]]) for row in rows)]
    headers = {"Content-Disposition": f'attachment; filename="labels-{record.number}.csv"'}
    return HttpResponse("".join(lines), content_type="text/csv; charset=utf-8", headers=headers)
