"""The models of an export, and what a model was made of: its set, its first model."""

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
from training.lineage.held_labels import TRAIN, HeldPart, count_held, find_exports
from training.models import Job, Model

KEPT_S = 60


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A training: its model, and the exports whose files it read (none where that is unknown)."""

    model: Model
    sha256: str  # Of the training set's manifest.
    exports: tuple[ExportRecord, ...]
    counts: list[HeldPart]
    deleted: tuple[str, ...] = ()  # Collections that the set was drawn from and that are not here any more.

    @property
    def export(self) -> ExportRecord | None:
        """The first of the exports: they hold the same."""
        return self.exports[0] if self.exports else None

    @property
    def subset(self) -> dict[str, Any]:
        """The part of the set trained on, of a point of a learning curve; empty: the whole."""
        return dict(self.model.job.options.get("subset") or {})


def trace_sources(model: Model) -> list[ModelSource]:
    """Return the trainings that led to a model, its own first, then that of the model that it began with, and so on."""
    line, seen = [model], {model.folder}
    rows = Model.objects.select_related("job", "collection")
    while (parent := rows.filter(folder=line[-1].base).first()) is not None and parent.folder not in seen:
        seen.add(parent.folder)
        line.append(parent)
    hashes = [set_hash(one) for one in line]
    exports = find_exports(hashes)
    counts = count_held(known[0].export for known in exports.values())
    sources = []
    for one, digest in zip(line, hashes, strict=True):
        known = exports.get(digest, [])
        held = counts[known[0].export] if known else []
        sources.append(ModelSource(one, digest, tuple(known), held, _find_deleted(one)))
    return sources


def set_hash(model: Model) -> str:
    """Return the hash of the manifest of a model's training set."""
    return str(model.job.options.get("data_sha256") or "")


def _find_deleted(model: Model) -> tuple[str, ...]:
    """Return the collections that a set names and that are gone; the set's manifest may be gone with its own."""
    try:
        options = json.loads(fetch(Path(model.job.options["data"]) / "manifest.json").read_text())["options"]
    except (OSError, ValueError, KeyError):
        return ()
    drawn = options.get("collections") or []
    here = set(Collection.objects.filter(name__in=drawn).values_list("name", flat=True))
    return tuple(name for name in drawn if name not in here)


def count_changed(models: Iterable[Model]) -> dict[int, int]:
    """Return for each model how many of the labels that it was trained on changed since; no entry where none did.

    Points of learning curves are left out: they were trained on a part of their set.
    """
    whole = [model for model in models if not model.job.options.get("subset")]
    exports = find_exports([set_hash(model) for model in whole])
    counts = count_held(known[0].export for known in exports.values())
    found = {}
    for model in whole:
        known = exports.get(set_hash(model))
        parts = counts[known[0].export] if known else []
        # What it learned from: the labels of the dev split chose a checkpoint alone.
        if changed := sum(changed for split, _origin, _labels, changed in parts if split == TRAIN):
            found[model.pk] = changed
    return found


def read_changed(collection: Collection, models: Sequence[Model]) -> dict[int, int]:
    """Return `count_changed` as of the last minute: a list asks every two seconds."""
    key = f"changed-labels-{collection.pk}-{max((model.pk for model in models), default=0)}"
    return cast(dict[int, int], cache.get_or_set(key, lambda: count_changed(models), KEPT_S))


def list_trained(hashes: Sequence[str]) -> list[Model]:
    """Return the models trained on these sets, and those that began with one, oldest first."""
    known = Model.objects.select_related("job", "collection").filter(job__curve_point=None)
    found = {one.pk: one for one in known.filter(job__options__data_sha256__in=[one for one in hashes if one])}
    newest = list(found.values())
    while newest:
        newest = list(known.filter(base__in=[one.folder for one in newest]).exclude(pk__in=found))
        found |= {one.pk: one for one in newest}
    return [found[pk] for pk in sorted(found)]


def list_jobs(models: Sequence[Model]) -> list[Job]:
    """Return the finished jobs that scored or wrote with the models."""
    jobs = Job.objects.filter(options__model__in=[one.pk for one in models], state=Job.State.FINISHED)
    return list(jobs.exclude(kind=Job.Kind.TRAIN).order_by("pk"))


def list_runs(models: Sequence[Model]) -> list[Run]:
    """Return the runs that models made, and those made of them: reranked, or combined with BM25."""
    known = Run.objects.filter(is_deleted=False).select_related("collection")
    found = {one.pk: one for one in known.filter(recipe__model__in=[one.folder for one in models])}
    newest = list(found)
    while newest:
        made = list(known.filter(recipe__run_id__in=newest).exclude(pk__in=found))
        found |= {one.pk: one for one in made}
        newest = [one.pk for one in made]
    return [found[pk] for pk in sorted(found)]


def list_reports(runs: Sequence[Run], qrels: Sequence[int]) -> list[Report]:
    """Return the reports on any of the runs, and those that any of the versions of the qrels graded.

    Leaderboards are left out: a report on one version compares nothing.
    """
    wanted = Q(before__in=qrels) | Q(after__in=qrels)
    for run in runs:
        wanted |= Q(options__runs__contains=[run.pk])
    compared = Report.objects.exclude(after=F("before"))
    rows = compared.filter(wanted, state=JobState.READY).select_related("collection", "before", "after")
    return list(rows.order_by("pk"))
