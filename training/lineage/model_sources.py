"""What a model was trained on and from, and which models were trained on an export."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from django.core.cache import cache
from django.db.models import F, Q

from benchmark.models import Report, Run
from corpus.models import Collection, ExportRecord
from jobs.models import JobState
from store.files import fetch
from training.lineage.held_labels import TRAIN, LabelCount, count_exported_labels, find_exports
from training.models import Job, Model

KEPT_S = 60


@dataclass(frozen=True, slots=True)
class ModelSource:
    """One training: its model, and the exports whose files it read (none if unknown)."""

    model: Model
    sha256: str  # Of the training set's manifest.
    exports: tuple[ExportRecord, ...]
    counts: list[LabelCount]
    deleted: tuple[str, ...] = ()  # Collections that the set was drawn from and that have been deleted.

    @property
    def export(self) -> ExportRecord | None:
        """The first of the exports, whose contents are equal."""
        return self.exports[0] if self.exports else None

    @property
    def subset(self) -> dict[str, Any]:
        """The subset of a learning curve's point; empty for a training on the whole set."""
        return dict(self.model.job.options.get("subset") or {})


def trace_sources(model: Model) -> list[ModelSource]:
    """Return the trainings that led to a model: its own, then that of its base model, and so on."""
    ancestry, seen = [model], {model.folder}
    rows = Model.objects.select_related("job", "collection")
    while (parent := rows.filter(folder=ancestry[-1].base).first()) is not None and parent.folder not in seen:
        seen.add(parent.folder)
        ancestry.append(parent)
    hashes = [set_hash(ancestor) for ancestor in ancestry]
    exports = find_exports(hashes)
    counts = count_exported_labels(records[0].export for records in exports.values())
    sources = []
    for ancestor, digest in zip(ancestry, hashes, strict=True):
        records = exports.get(digest, [])
        label_counts = counts[records[0].export] if records else []
        sources.append(ModelSource(ancestor, digest, tuple(records), label_counts, _find_deleted(ancestor)))
    return sources


def set_hash(model: Model) -> str:
    """Return the hash of the manifest of a model's training set; empty if it was not recorded."""
    return str(model.job.options.get("data_sha256") or "")


def _find_deleted(model: Model) -> tuple[str, ...]:
    """Return the deleted collections that a training set was drawn from; none if its manifest was deleted too."""
    try:
        options = json.loads(fetch(Path(model.job.options["data"]) / "manifest.json").read_text())["options"]
    except (OSError, ValueError, KeyError):
        return ()
    names = options.get("collections") or []
    existing = set(Collection.objects.filter(name__in=names).values_list("name", flat=True))
    return tuple(name for name in names if name not in existing)


def count_changed(models: Iterable[Model]) -> dict[int, int]:
    """Return how many labels of each model's training set changed since, by model id; models with none are left out.

    So are points of learning curves, which were trained on a part of their set.
    """
    models = [model for model in models if not model.job.options.get("subset")]
    exports = find_exports([set_hash(model) for model in models])
    counts = count_exported_labels(records[0].export for records in exports.values())
    changed_by_model = {}
    for model in models:
        records = exports.get(set_hash(model))
        parts = counts[records[0].export] if records else []
        # The model did not learn from the dev split, which only chose a checkpoint.
        if changed := sum(changed for split, _origin, _labels, changed in parts if split == TRAIN):
            changed_by_model[model.pk] = changed
    return changed_by_model


def read_changed(collection: Collection, models: Sequence[Model]) -> dict[int, int]:
    """Return `count_changed`, cached for a minute because an open list asks every two seconds."""
    key = f"changed-labels-{collection.pk}-{max((model.pk for model in models), default=0)}"
    return cast(dict[int, int], cache.get_or_set(key, lambda: count_changed(models), KEPT_S))


def list_trained(hashes: Sequence[str]) -> list[Model]:
    """Return the models trained on these sets, and those that used one of them as their base, oldest first."""
    rows = Model.objects.select_related("job", "collection").filter(job__curve_point=None)
    newest = list(rows.filter(job__options__data_sha256__in=[digest for digest in hashes if digest]))
    models = {model.pk: model for model in newest}
    while newest:
        newest = list(rows.filter(base__in=[model.folder for model in newest]).exclude(pk__in=models))
        models |= {model.pk: model for model in newest}
    return [models[pk] for pk in sorted(models)]


def list_jobs(models: Sequence[Model]) -> list[Job]:
    """Return the finished jobs that scored or wrote with the models."""
    jobs = Job.objects.filter(options__model__in=[model.pk for model in models], state=Job.State.FINISHED)
    return list(jobs.exclude(kind=Job.Kind.TRAIN).order_by("pk"))


def list_runs(models: Sequence[Model]) -> list[Run]:
    """Return the runs that the models made, and the runs derived from those by reranking or combining with BM25."""
    rows = Run.objects.filter(is_deleted=False).select_related("collection")
    newest = list(rows.filter(recipe__model__in=[model.folder for model in models]))
    runs = {run.pk: run for run in newest}
    while newest:
        newest = list(rows.filter(recipe__run_id__in=[run.pk for run in newest]).exclude(pk__in=runs))
        runs |= {run.pk: run for run in newest}
    return [runs[pk] for pk in sorted(runs)]


def list_reports(runs: Sequence[Run], qrels: Sequence[int]) -> list[Report]:
    """Return the reports on any of the runs or versions of the qrels.

    Leaderboards are left out: a report on one version compares nothing.
    """
    condition = Q(before__in=qrels) | Q(after__in=qrels)
    for run in runs:
        condition |= Q(options__runs__contains=[run.pk])
    compared = Report.objects.exclude(after=F("before"))
    rows = compared.filter(condition, state=JobState.READY).select_related("collection", "before", "after")
    return list(rows.order_by("pk"))
