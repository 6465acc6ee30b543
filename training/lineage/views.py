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
from training.lineage.held_labels import read_exported_labels
from training.models import Model

SHOWN = 100  # The number of changed labels on the page of a model; the file has all of them.
HEADER = ("collection", "query_id", "doc_id", "split", "grade", "origin", "grade_now", "origin_now")


@action("admin")
@require_GET
def label_lineage(request: HttpRequest, scope: AccessScope, pair: int) -> HttpResponse:
    """Show the exports, models, runs and reports that a label went into."""
    rows = Pair.objects.select_related("query", "document", "collection")
    pair_row = get_object_or_404(rows, pk=pair, collection=scope.collection)
    context = {
        "scope": scope,
        "pair": pair_row,
        "traced": steps.trace_label(pair_row, _list_administered(scope)),
        "attempts": Attempt.objects.filter(pair=pair_row).count(),
    }
    return render(request, "lineage/label.html", context)


@action("admin")
@require_GET
def model_lineage(request: HttpRequest, scope: AccessScope, model: int) -> HttpResponse:
    """Show what a model is made of: campaigns, labels, exports and base models."""
    models = Model.objects.select_related("job", "collection")
    model_row = get_object_or_404(models, pk=model, collection=scope.collection)
    sources = model_sources.trace_sources(model_row)
    # A CSV file of all labels of the training set whose manifest has this hash, as exported and as of today.
    if (sha256 := request.GET.get("labels")) is not None:
        record = next((source.export for source in sources if source.export and source.export.sha256 == sha256), None)
        if record is None:
            raise Http404(_("Export not found."))
        rows = read_exported_labels(record.export, everything=True)
        lines = [csv_line(HEADER), *(csv_line(["" if cell is None else cell for cell in row[:-1]]) for row in rows)]
        headers = {"Content-Disposition": f'attachment; filename="labels-{record.number}.csv"'}
        return HttpResponse("".join(lines), content_type="text/csv; charset=utf-8", headers=headers)
    parts = []
    for source in sources:
        rows = read_exported_labels(source.export.export, everything=False, limit=SHOWN) if source.export else []
        # With their collections, whose scales say what the grades mean.
        collections = Collection.objects.in_bulk({row[0] for row in rows}, field_name="name")
        parts.append((source, [(collections[row[0]], *row[1:]) for row in rows]))
    context = {
        "scope": scope,
        "model": model_row,
        "parts": parts,
        "steps": steps.trace_model(model_row, sources, _list_administered(scope)),
    }
    return render(request, "lineage/model.html", context)


def _list_administered(scope: AccessScope) -> frozenset[int]:
    return frozenset(administered(scope.user).values_list("pk", flat=True))
