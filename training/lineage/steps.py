"""LineageSteps of lineage: what a label went into, and what a model was made from and used for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from benchmark.models import Qrels, QrelsRow
from corpus.labels import grade_label, name_grade
from corpus.models import Label, Pair
from training.lineage import model_sources
from training.lineage.held_labels import TRAIN, list_campaigns, list_label_exports
from training.lineage.model_sources import ModelSource
from training.models import Model


@dataclass(frozen=True, slots=True)
class LineageStep:
    """A campaign, model, job, run, report or version of the qrels that a label or model is connected to.

    `changed`: how many labels of a model's training set changed since.
    """

    name: str
    note: str
    address: str = ""
    changed: int = 0


LineageSteps = dict[str, list[LineageStep]]  # By the heading of their kind; empty kinds are left out.


def trace_label(pair: Pair, administered: frozenset[int]) -> dict[str, Any]:
    """Follow a pair's label through exports and models to reports.

    `administered`: the collections whose models and runs the reader may see. In the result, `held` are the exports
    that contain the label, `steps` what was made from them, `elsewhere` the number of models in other collections.
    """
    exported_labels = list_label_exports(pair)
    # A model learns from the training split alone: a changed dev label changes no model.
    all_models = model_sources.list_trained([label.record.sha256 for label in exported_labels if label.split == TRAIN])
    models = [model for model in all_models if model.collection_id in administered]
    qrels: list[tuple[Qrels, int]] = []
    rows = QrelsRow.objects.filter(query=pair.query_id, documents__contains=[pair.document_id])
    for row in rows.select_related("qrels").order_by("qrels"):
        position = row.documents.index(pair.document_id)
        # Grades that came with the collection do not come from a label.
        if row.origins[position] not in ("original", "imported"):
            qrels.append((row.qrels, row.grades[position]))
    scale = pair.collection.grades, pair.collection.grade_names
    changed = model_sources.count_changed(models)
    steps = {
        _("Qrels"): [
            LineageStep(
                _("Qrels %(number)s") % {"number": version.number},
                # "2 relevant", or "grade 4" where the scale has no words for it.
                name_grade(grade, *scale) if grade_label(grade, *scale) else _("grade %(grade)s") % {"grade": grade},
                reverse("qrels", args=[pair.collection.name]),
            )
            for version, grade in qrels
        ],
        _("Models"): [_model_step(model, changed.get(model.pk, 0)) for model in models],
        **_later_steps(models, [version.pk for version, _grade in qrels], administered),
    }
    return {
        "label": Label.objects.filter(pair=pair, aspect=None).first(),
        "held": exported_labels,
        "steps": {kind: members for kind, members in steps.items() if members},
        "elsewhere": len(all_models) - len(models),
    }


def trace_model(model: Model, sources: Sequence[ModelSource], administered: frozenset[int]) -> LineageSteps:
    """List the campaigns and base models of a model, and what was made with it.

    `sources` come from trace_sources; `administered` are the collections whose runs the reader may see.
    """
    steps = {
        _("Campaigns"): [
            LineageStep(
                _("Campaign %(campaign_id)s") % {"campaign_id": campaign.number},
                # A training set may join collections, each with a campaign of this number.
                f"{campaign.policy}, {campaign.collection.name}",
                f"{reverse('campaigns', args=[campaign.collection.name])}#campaign-{campaign.number}",
            )
            for campaign in list_campaigns([source.export.export for source in sources if source.export])
        ],
        _("Models"): [_model_step(source.model) for source in sources if source.model != model],
        **_later_steps([model], [], administered),
    }
    return {kind: members for kind, members in steps.items() if members}


def _later_steps(models: Sequence[Model], qrels: Sequence[int], administered: frozenset[int]) -> LineageSteps:
    """Return the jobs and runs that used the models, and the reports on those runs or on versions of the qrels."""
    # A shared model may have runs in collections whose figures the reader may not see.
    runs = [run for run in model_sources.list_runs(models) if run.collection_id in administered]
    return {
        _("Jobs"): [
            LineageStep(
                _("Job %(job)s") % {"job": job.number},
                str(job.get_kind_display()),
                reverse("training_job", args=[job.collection.name, job.number]) if job.collection else "",
            )
            for job in model_sources.list_jobs(models)
        ],
        _("Runs"): [
            LineageStep(run.name, str(run.get_kind_display()), reverse("system", args=[run.collection.name, run.pk]))
            for run in runs
        ],
        _("Reports"): [
            LineageStep(
                _("Report %(report)s") % {"report": report.number},
                _("qrels %(before)s and %(after)s") % {"before": report.before.number, "after": report.after.number},
                reverse("report", args=[report.collection.name, report.number]),
            )
            for report in model_sources.list_reports(runs, qrels)
        ],
    }


def _model_step(model: Model, changed: int = 0) -> LineageStep:
    address = reverse("model_lineage", args=[model.collection.name, model.pk]) if model.collection else ""
    return LineageStep(model.name, model.words, address, changed)
