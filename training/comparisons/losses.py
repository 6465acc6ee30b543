"""The four losses of distillation side by side: which models differ in nothing else, and the job that compares them."""

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
from training.distillation.comparison import BASE, read_variants
from training.jobs import lifecycle
from training.models import Job, Model
from training.recipes.table import LOSSES, recipe_options
from training.serving.publication import base_name

DEPTH = 100  # Documents of each query, as in the paper.
SHOWN = 200  # Models that are looked at, the newest.


@dataclass
class LossGroup:
    """Models of the recipe ablation with the same base, training set and options, by their loss; the newest of each."""

    base: str
    models: dict[str, Model] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        """The losses that no model has."""
        return [loss for loss in LOSSES["ablation"] if loss not in self.models]

    @property
    def first(self) -> Model:
        """The model that names the group."""
        return self.models[next(iter(LOSSES["ablation"]))]


def group_losses(collection: Collection) -> list[LossGroup]:
    """Return the groups of a collection whose folders are there, the newest first."""
    rows = Model.objects.filter(collection=collection, recipe="ablation", job__curve_point=None)
    groups: dict[object, LossGroup] = {}
    for model in rows.select_related("job").order_by("-pk")[:SHOWN]:
        if fetch(Path(model.folder) / "reranker.json").exists():
            options = vars(recipe_options(model.recipe, model.job.options.get("options") or {})).copy()
            loss = str(options.pop("loss"))
            # What its training has in common with those that it may be compared with.
            alike = (model.base, model.job.options["data"], *sorted(map(str, options.items())))
            groups.setdefault(alike, LossGroup(base_name(model.base))).models.setdefault(loss, model)
    return list(groups.values())


class LossForm(forms.Form):
    """Which models are compared, and whose documents they rank."""

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
        self.groups = {str(one.first.pk): one for one in groups if not one.missing}
        group, run = self.fields["group"], self.fields["run"]
        assert isinstance(group, forms.ChoiceField) and isinstance(run, forms.ChoiceField)
        group.choices = [
            (key, f"{one.base}: {', '.join(model.name for model in one.models.values())}")
            for key, one in self.groups.items()
        ]
        stored = Run.objects.filter(collection=collection, is_deleted=False, state=Run.READY).order_by("name")
        run.choices = [("", "BM25"), *((str(one.pk), one.name) for one in stored)]


def begin_comparison(*, collection: Collection, models: Mapping[str, Model], run: str, user: str) -> Job:
    """Queue a job that ranks with the base and one model for each loss. Raises BadInput."""
    variants = read_variants([fetch(Path(model.folder) / "reranker.json").parent for model in models.values()])
    trained = next(iter(models.values())).job
    if collection.pk != trained.collection_id:
        raise BadInput(_("These models belong to another collection"))
    folders = {BASE: trained.options["base"]} | {loss: str(folder) for loss, folder in variants.items()}
    options: dict[str, Any] = {"models": folders, "data": trained.options["data"], "depth": DEPTH}
    options |= {"name": base_name(str(trained.options["base"]))} | ({"run": int(run)} if run else {})
    return lifecycle.begin_job(
        kind=Job.Kind.LOSSES, options=options, collection=collection, device=trained.device, user=user
    )
