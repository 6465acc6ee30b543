"""The page that compares models on the same held-out dev queries."""

from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from charts import Chart, IntervalSpan, draw_intervals
from corpus.access import AccessScope, action
from corpus.chart_downloads import download
from corpus.models import Collection
from training.comparisons.tabling import ComparedGroup, TrainedModel, group_models
from training.jobs.held_out import MEASURE, read_held_out
from training.models import Model
from training.recipes.table import GrpoOptions, recipe_options
from training.serving.publication import base_name

SHOWN = 100  # Models that are compared, the newest.


@action("admin")
@require_GET
def compare_trained(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show a table and a picture for each set of held-out queries on which models were measured."""
    groups = group_models(list_models(scope.collection))
    charts = [draw_group(place, group, scope.collection.name) for place, group in enumerate(groups, 1)]
    if (file := download(request, charts)) is not None:
        return file
    context = {"scope": scope, "groups": list(zip(groups, charts, strict=True)), "measure": MEASURE}
    return render(request, "comparisons/comparisons.html", context)


def list_models(collection: Collection) -> list[TrainedModel]:
    """Return the newest models of a collection, without the points of learning curves."""
    found = Model.objects.filter(collection=collection, job__curve_point=None).select_related("job").order_by("-pk")
    return [
        TrainedModel(
            model.pk,
            model.name,
            model.recipe,
            model.base,
            model.folder,
            read_held_out(Path(model.folder)),
            read_reward(model),
            model.words,
        )
        for model in found[:SHOWN]
    ][::-1]


def read_reward(model: Model) -> str:
    """Return the reward that a model was trained by; empty for those of other recipes."""
    if model.recipe != "erank-grpo":
        return ""
    options = recipe_options(model.recipe, model.job.options.get("options") or {})
    return options.reward if isinstance(options, GrpoOptions) else ""


def draw_group(place: int, group: ComparedGroup, source: str) -> Chart:
    """Draw each model's measure with its interval."""
    spans = [
        IntervalSpan(
            " · ".join(filter(None, (row.role, row.reward, base_name(row.name) if row.key is None else row.name))),
            row.measure.value,
            row.measure.low,
            row.measure.high,
        )
        for row in group.rows
    ]
    title = _("%(measure)s on the same %(queries)s held-out dev queries") % {
        "measure": MEASURE,
        "queries": group.queries,
    }
    return draw_intervals(f"models-{place}", title, spans, x=MEASURE, source=source)
