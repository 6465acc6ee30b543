"""Where a label went and what was made of a model, as one list of names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from benchmark.models import Qrels, QrelsRow
from corpus.labels import grade_label, name_grade
from corpus.models import Label, Pair
from training.lineage import model_sources
from training.lineage.held_labels import list_campaigns, list_holders
from training.lineage.model_sources import ModelSource
from training.models import Model


@dataclass(frozen=True, slots=True)
class Step:
    """A thing that a label went into, or a model was made of. `changed`: labels of a model that changed since."""

    name: str
    note: str
    address: str = ""
    changed: int = 0


Steps = dict[str, list[Step]]  # By the word for their kind; kinds without any are left out.


def trace_label(pair: Pair, administered: frozenset[int]) -> dict[str, Any]:
    """Follow a pair's label to reports; `administered`: collections whose models and runs the reader may see.

    `held`: the exports that hold it; `steps`: what comes after them; `elsewhere`: models in other collections.
    """
    held = list_holders(pair)
    # Only the training split teaches: a changed dev label changes no model.
    every = model_sources.list_trained([one.record.sha256 for one in held if one.split == "train"])
    models = [one for one in every if one.collection_id in administered]
    qrels, grades = _list_qrels(pair), pair.collection.grades
    changed = model_sources.count_changed(models)
    steps = {
        _("Qrels"): [
            Step(
                _("Qrels %(number)s") % {"number": one.number},
                # "2 relevant", or "grade 4" where the scale has no words for it.
                name_grade(grade, grades) if grade_label(grade, grades) else _("grade %(grade)s") % {"grade": grade},
                reverse("qrels", args=[pair.collection.name]),
            )
            for one, grade in qrels
        ],
        _("Models"): [_model_step(one, changed.get(one.pk, 0)) for one in models],
        **_later_steps(models, [one.pk for one, _grade in qrels], administered),
    }
    return {
        "label": Label.objects.filter(pair=pair, aspect=None).first(),
        "held": held,
        "steps": {kind: found for kind, found in steps.items() if found},
        "elsewhere": len(every) - len(models),
    }


def trace_model(model: Model, sources: Sequence[ModelSource], administered: frozenset[int]) -> Steps:
    """List the campaigns and base models of a model, and what was made with it.

    `sources`: as trace_sources returns them; `administered`: collections whose runs the reader may see.
    """
    steps = {
        _("Campaigns"): [
            Step(
                _("Campaign %(campaign_id)s") % {"campaign_id": one.number},
                # A training set may join collections, each with a campaign of this number.
                f"{one.policy}, {one.collection.name}",
                f"{reverse('campaigns', args=[one.collection.name])}#campaign-{one.number}",
            )
            for one in list_campaigns([one.export.export for one in sources if one.export])
        ],
        _("Models"): [_model_step(one.model) for one in sources if one.model != model],
        **_later_steps([model], [], administered),
    }
    return {kind: found for kind, found in steps.items() if found}


def _later_steps(models: Sequence[Model], qrels: Sequence[int], administered: frozenset[int]) -> Steps:
    """Return the jobs and runs that used the models, and the reports on those runs or on versions of the qrels."""
    # A run of a shared model may stand in a collection whose figures the reader may not see.
    runs = [one for one in model_sources.list_runs(models) if one.collection_id in administered]
    return {
        _("Jobs"): [
            Step(
                _("Job %(job)s") % {"job": one.number},
                str(one.get_kind_display()),
                reverse("training_job", args=[one.collection.name, one.number]) if one.collection else "",
            )
            for one in model_sources.list_jobs(models)
        ],
        _("Runs"): [
            Step(one.name, str(one.get_kind_display()), reverse("system", args=[one.collection.name, one.pk]))
            for one in runs
        ],
        _("Reports"): [
            Step(
                _("Report %(report)s") % {"report": one.number},
                _("qrels %(before)s and %(after)s") % {"before": one.before.number, "after": one.after.number},
                reverse("report", args=[one.collection.name, one.number]),
            )
            for one in model_sources.list_reports(runs, qrels)
        ],
    }


def _model_step(model: Model, changed: int = 0) -> Step:
    address = reverse("model_lineage", args=[model.collection.name, model.pk]) if model.collection else ""
    return Step(model.name, model.words, address, changed)


def _list_qrels(pair: Pair) -> list[tuple[Qrels, int]]:
    """Return the versions of the qrels that hold this pair by its label, and its grade there."""
    rows = QrelsRow.objects.filter(query=pair.query_id, documents__contains=[pair.document_id])
    found = []
    for row in rows.select_related("qrels").order_by("qrels"):
        at = row.documents.index(pair.document_id)
        # Grades that came with the collection have no label behind them.
        if row.origins[at] not in ("original", "imported"):
            found.append((row.qrels, row.grades[at]))
    return found
