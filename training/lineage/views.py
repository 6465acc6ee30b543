"""Pages of lineage: where a label went, and what a model was made of."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from charts.cells import csv_line
from corpus.access import AccessScope, action, administered
from corpus.chart_downloads import download
from corpus.models import Collection, Pair
from judges.models import Attempt
from training.lineage import graphs, model_sources
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
    mine = frozenset(administered(scope.user).values_list("pk", flat=True))
    traced = graphs.trace_label(found, mine)
    name = f"{found.query.external_id} × {found.document.external_id}"
    graph: graphs.Lineage = traced["graph"]
    chart = graph.draw(_("From judgments to reports"), f"{scope.collection.name}: {name}")
    if (file := download(request, [chart])) is not None:
        return file
    if request.GET.get("as") == "json":
        return _send_json(f"label-{found.pk}", graph)
    context = {
        "scope": scope,
        "pair": found,
        "traced": traced,
        "chart": chart,
        "models": [(one, traced["changed"].get(one.pk, 0)) for one in traced["models"]],
        "attempts": Attempt.objects.filter(pair=found).count(),
    }
    return render(request, "lineage/label.html", context)


@action("admin")
@require_GET
def model_lineage(request: HttpRequest, scope: AccessScope, model: int) -> HttpResponse:
    """Show what a model is made of: campaigns, labels, exports and base models."""
    found = get_object_or_404(_models(), pk=model, collection=scope.collection)
    sources = model_sources.trace_sources(found)
    graph = graphs.trace_model(found, sources)
    chart = graph.draw(_("From labels to reports"), f"{scope.collection.name}: {found.name}")
    if (file := download(request, [chart])) is not None:
        return file
    if request.GET.get("as") == "json":
        return _send_json(f"model-{found.pk}", graph)
    if (sha256 := request.GET.get("labels")) is not None:
        return _send_labels(sources, sha256)
    parts = [(one, _list_changed(one.export.export) if one.export else []) for one in sources]
    context = {"scope": scope, "model": found, "parts": parts, "chart": chart}
    return render(request, "lineage/model.html", context)


def _list_changed(export: int) -> list[tuple[Any, ...]]:
    """List the labels that changed since the export, with their collections, whose scales say what the grades mean."""
    rows = read_held(export, everything=False, limit=SHOWN)
    homes = Collection.objects.in_bulk({row[0] for row in rows}, field_name="name")
    return [(homes[row[0]], *row[1:]) for row in rows]


def _models() -> QuerySet[Model]:
    return Model.objects.select_related("job", "collection")


def _send_json(name: str, graph: graphs.Lineage) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}.json"'}
    options = {"ensure_ascii": False, "indent": 2}
    return JsonResponse({"lineage": graph.document()}, json_dumps_params=options, headers=headers)


def _send_labels(sources: list[model_sources.ModelSource], sha256: str) -> HttpResponse:
    """Send every label of one of the model's training sets, as it was and as it is. `sha256`: of its manifest."""
    record = next((one.export for one in sources if one.export and one.export.sha256 == sha256), None)
    if record is None:
        raise Http404(_("Export not found."))
    rows = read_held(record.export, everything=True)
    lines = [csv_line(HEADER), *(csv_line(["" if one is None else one for one in row[:-1]]) for row in rows)]
    headers = {"Content-Disposition": f'attachment; filename="labels-{record.number}.csv"'}
    return HttpResponse("".join(lines), content_type="text/csv; charset=utf-8", headers=headers)
