"""Comparison of the four losses of distillation: which models differ only in their loss, and the job that ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from benchmark.models import Run
from corpus.errors import BadInput
from corpus.models import Collection
from store.files import fetch
from training.jobs import lifecycle
from training.jobs.loss_comparison import BASE, read_variants
from training.models import Job, Model
from training.published.publication import base_name
from training.recipes.table import LOSSES, recipe_options

DEPTH = 100  # Documents of each query, as in the paper.
SHOWN = 200  # The newest models only.


@dataclass
class LossGroup:
    """The newest model of each loss, all of the recipe ablation with the same base, training set and options."""

    base: str
    models: dict[str, Model] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        """The losses that no model was trained with."""
        return [loss for loss in LOSSES["ablation"] if loss not in self.models]

    @property
    def first(self) -> Model:
        """The model that names the group."""
        return self.models[next(iter(LOSSES["ablation"]))]


def group_losses(collection: Collection) -> list[LossGroup]:
    """Return the groups of a collection's models whose folders exist, the newest first."""
    rows = Model.objects.filter(collection=collection, recipe="ablation", job__curve_point=None)
    groups: dict[object, LossGroup] = {}
    for model in rows.select_related("job").order_by("-pk")[:SHOWN]:
        if fetch(Path(model.folder) / "reranker.json").exists():
            options = vars(recipe_options(model.recipe, model.job.options.get("options") or {})).copy()
            loss = str(options.pop("loss"))
            # Models may be compared if nothing but their loss differs.
            key = (model.base, model.job.options["data"], *sorted(map(str, options.items())))
            groups.setdefault(key, LossGroup(base_name(model.base))).models.setdefault(loss, model)
    return list(groups.values())


class LossForm(forms.Form):
    """The form that starts a comparison: a group of models, and the run that they rerank."""

    group = forms.ChoiceField(label=gettext_lazy("Models"))
    run = forms.ChoiceField(
        label=gettext_lazy("Run to rerank"),
        required=False,
        help_text=gettext_lazy(
            "The first 100 documents of each held-out dev query, with the relevant documents that are not among them."
        ),
    )

    def __init__(self, *args: Any, groups: Sequence[LossGroup], collection: Collection, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = {str(loss_group.first.pk): loss_group for loss_group in groups if not loss_group.missing}
        group, run = self.fields["group"], self.fields["run"]
        assert isinstance(group, forms.ChoiceField) and isinstance(run, forms.ChoiceField)
        group.choices = [
            (key, f"{loss_group.base}: {', '.join(model.name for model in loss_group.models.values())}")
            for key, loss_group in self.groups.items()
        ]
        rows = Run.objects.filter(collection=collection, is_deleted=False, state=Run.READY).order_by("name")
        run.choices = [("", "BM25"), *((str(row.pk), row.name) for row in rows)]


def begin_comparison(*, collection: Collection, models: Mapping[str, Model], run: str, user: str) -> Job:
    """Queue a job that ranks with the base and with one model of each loss.

    `run`: the id of the run to rerank, empty for BM25. Raises BadInput.
    """
    variants = read_variants([fetch(Path(model.folder) / "reranker.json").parent for model in models.values()])
    training = next(iter(models.values())).job
    if collection.pk != training.collection_id:
        raise BadInput(_("These models belong to another collection"))
    folders = {BASE: training.options["base"]} | {loss: str(folder) for loss, folder in variants.items()}
    options: dict[str, Any] = {"models": folders, "data": training.options["data"], "depth": DEPTH}
    options |= {"name": base_name(str(training.options["base"]))} | ({"run": int(run)} if run else {})
    return lifecycle.begin_job(
        kind=Job.Kind.LOSSES, options=options, collection=collection, device=training.device, user=user
    )
