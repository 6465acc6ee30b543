"""The page that compares models on the same held-out dev queries."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from charts import Chart, IntervalSpan, draw_intervals
from corpus.access import AccessScope, action
from corpus.chart_downloads import download
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput
from corpus.models import Collection
from store.files import fetch
from training.comparisons.losses import LossForm, LossGroup, begin_comparison, group_losses
from training.comparisons.tabling import TrainedModel, group_models
from training.jobs import pages
from training.jobs.held_out import MEASURE, read_held_out
from training.models import Job, Model
from training.published.publication import base_name
from training.recipes.table import recipe_options

SHOWN = 100  # The newest models.
SHOWN_JOBS = 10  # The newest comparisons of losses.

DrawnGroups = list[tuple[dict[str, Any], Chart]]


@action("admin")
@require_GET
def compare_trained(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show a table and a chart for each set of held-out queries, and the comparisons of losses below."""
    groups = _drawn_groups(scope)
    if (file := download(request, [chart for _group, chart in groups])) is not None:
        return file
    losses = group_losses(scope.collection)
    return _render_page(request, scope, LossForm(groups=losses, collection=scope.collection), losses, groups)


def _drawn_groups(scope: AccessScope) -> DrawnGroups:
    """Return each group of models with a chart of their measures and intervals."""
    drawn_groups = []
    for number, group in enumerate(group_models(list_models(scope.collection)), 1):
        spans = [
            IntervalSpan(
                " · ".join(filter(None, (row.role, row.reward, base_name(row.name) if row.key is None else row.name))),
                *(row.measure.value, row.measure.low, row.measure.high),
            )
            for row in group["rows"]
        ]
        title = _("%(measure)s on the same %(queries)s held-out dev queries") % {
            "measure": MEASURE,
            "queries": group["queries"],
        }
        chart = draw_intervals(f"models-{number}", title, spans, x=MEASURE, source=scope.collection.name)
        drawn_groups.append((group, chart))
    return drawn_groups


def _render_page(
    request: HttpRequest,
    scope: AccessScope,
    form: LossForm,
    losses: Sequence[LossGroup],
    groups: DrawnGroups,
    *,
    status: int = 200,
) -> HttpResponse:
    jobs = Job.objects.filter(collection=scope.collection, kind=Job.Kind.LOSSES).order_by("-pk")[:SHOWN_JOBS]
    context = {
        "scope": scope,
        "groups": groups,
        "measure": MEASURE,
        "losses": losses,
        "loss_form": form,
        "loss_jobs": jobs,
        "why_not": pages.why_not(),
    }
    return render(request, "comparisons/comparisons.html", context, status=status)


@action("admin")
@require_POST
def compare_losses(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Queue the comparison of four models that differ only in their loss."""
    losses = group_losses(scope.collection)
    form = LossForm(request.POST, groups=losses, collection=scope.collection)
    if form.is_valid() and (reason := pages.why_not()):
        form.add_error(None, reason)
    if form.is_valid():
        loss_group = form.groups[form.cleaned_data["group"]]
        try:
            with transaction.atomic():
                job = begin_comparison(
                    collection=scope.collection,
                    models=loss_group.models,
                    run=form.cleaned_data["run"],
                    user=scope.user.username,
                )
                record_act(scope, "training.control", job=job.number, what="losses")
            return redirect("training_job", scope.collection.name, job.number)
        except BadInput as error:
            form.add_error(None, _("Not started: %(error)s.") % {"error": error})
    return _render_page(request, scope, form, losses, _drawn_groups(scope), status=422)


def list_models(collection: Collection) -> list[TrainedModel]:
    """Return a collection's newest models, oldest first, without the points of learning curves."""
    rows = Model.objects.filter(collection=collection, job__curve_point=None).select_related("job").order_by("-pk")
    models = []
    for row in reversed(rows[:SHOWN]):
        held_out, reward = read_held_out(fetch(Path(row.folder) / "reranker.json").parent), ""
        if row.recipe == "erank-grpo":
            reward = vars(recipe_options(row.recipe, row.job.options.get("options") or {}))["reward"]
        models.append(TrainedModel(row.pk, row.name, row.recipe, row.base, row.folder, held_out, reward, row.words))
    return models
