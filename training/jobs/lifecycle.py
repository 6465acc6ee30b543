"""Services of training jobs: begin, go on, publish. The row is the truth; the folder holds what the subprocess said."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from benchmark.models import Run
from corpus.errors import BadInput, BadOption
from corpus.models import Collection
from jobs import leases
from store.files import fetch
from training.jobs import worker_pool
from training.jobs.folder import JobFolder, check_new
from training.models import Job, Model
from training.recipes import table
from training.recipes.data import open_manifest
from training.recipes.refusals import RefusedTraining
from training.recipes.tracking import check_tracker
from training.serving.publication import base_name

SHARED = "_shared"  # Folder of jobs that belong to no collection. No collection's name begins so.


def collection_folder(kind: str, collection: Collection | None) -> Path:
    """Return the folder VAR/jobs or VAR/models of a collection."""
    return Path(settings.VAR) / kind / (collection.name if collection else SHARED)


@contextmanager
def translate_refusals() -> Iterator[None]:
    """Translate what the recipes refuse."""
    try:
        yield
    except RefusedTraining as error:
        raise BadInput(_(error.words) % error.values) from error


def begin_job(
    *,
    kind: str,
    options: Mapping[str, Any],
    collection: Collection | None,
    device: str = "cpu",
    user: str = "",
) -> Job:
    """Queue a job. Raises BadInput for what is known to be wrong before it starts."""
    if device not in ("cpu", "cuda"):
        raise BadInput(_("Device must be cpu or cuda, not %(device)s") % {"device": f"{device!r}"})
    # A random name: the folder is made before the row has an id.
    folder = collection_folder("jobs", collection) / uuid4().hex
    job = Job.objects.create(
        collection=collection, kind=kind, options=dict(options), device=device, folder=str(folder), made_by=user
    )
    JobFolder(folder).ask({"kind": kind, "device": device, **options})
    # After the commit: a worker that is woken sooner would not find the row.
    transaction.on_commit(worker_pool.notify_workers)
    return job


@translate_refusals()
def begin_training(
    *,
    recipe: str,
    data: Path,
    base: str,
    out: Path | None,
    option_values: Mapping[str, Any],
    collection: Collection | None = None,
    device: str = "cpu",
    user: str = "",
    subset: Mapping[str, Any] | None = None,
) -> Job:
    """Queue a training; without `out` the model goes to VAR/models.

    Raises BadInput. `subset`: which part of the set to train on, as curves.subsets.write_subset takes it.
    """
    options = table.recipe_options(recipe, option_values)
    if find_spec("torch"):  # Elsewhere trains who knows what is installed there, and the job says so before it starts.
        check_tracker(options.tracking)
    entry = table.RECIPES[recipe]
    # Looked for before the manifest is read: the words name what the folder has to be.
    if not fetch(data / "manifest.json").exists():
        raise BadOption(
            "data",
            _("%(data)s has no manifest.json: name the folder of an export of format %(format)s.")
            % {"data": data.name, "format": entry.format},
        )
    manifest, raw = open_manifest(data, entry.format)
    if out is not None:
        check_new(out)
    # The stored run of a set's negatives: the model would rerank it. Else BM25.
    named = str(((manifest.get("options") or {}).get("run") or {}).get("name", "")).removesuffix(".run")
    runs = Run.objects.filter(collection=collection, name=named, is_deleted=False).order_by("-pk")
    run = runs.first() if collection and named else None
    target = out or collection_folder("models", collection) / uuid4().hex
    asked: dict[str, Any] = {
        "recipe": recipe,
        "data": str(data.resolve()),
        # Lineage finds the export by this hash, wherever its folder lies by then.
        "data_sha256": sha256(raw).hexdigest(),
        "base": base,
        "out": str(target.resolve()),
        "options": dict(option_values),
    }
    asked |= {"run": run.pk, "first_stage": f"run {run.name}"} if run else {}
    asked |= {"subset": dict(subset)} if subset else {}
    return begin_job(kind=Job.Kind.TRAIN, options=asked, collection=collection, device=device, user=user)


def go_on(job: Job) -> bool:
    """Requeue a cancelled or failed job, which resumes from its newest checkpoint."""
    went = leases.resume(job, phase="waiting")
    if went:
        transaction.on_commit(worker_pool.notify_workers)
    return went


# Kind of a job with a model -> the models that it scores or writes with.
USES: dict[str, tuple[str, ...]] = {
    Job.Kind.EVALUATE: ("base", "tuned"),
    Job.Kind.RERANK: ("tuned",),
    Job.Kind.ORDER: ("model",),
    Job.Kind.GENERATE: ("base", "tuned"),
}


def use_model(model: Model, kind: str, user: str = "", **job_options: object) -> Job:
    """Queue a job that scores with a model, or lets base and model write on the dev split. Raises BadInput.

    `job_options`: `precision` and `max_new_tokens`, as the job reads them; without them the job's defaults hold.
    """
    if table.is_embedding_recipe(model.recipe):
        raise BadInput(
            _("%(name)s is an embedding model, which scores no pairs: serve it with serve_model") % {"name": model.name}
        )
    trained = model.job.options
    models = {name: trained["base"] if name == "base" else model.folder for name in USES[kind]}
    options = {"models": models, "data": trained["data"], "model": model.pk, "name": model.name, **job_options}
    return begin_job(kind=kind, options=options, collection=model.collection, device=model.job.device, user=user)


def publish_model(job: Job) -> Model:
    """Return the row of the model that a training wrote."""
    kept = ("evaluation", "calibration", "gain", "rankings", "checkpoint", "merge_difference")
    # A base may be a path or a hub id; the name of the model is what a reader knows it by.
    base = base_name(str(job.options["base"])).rpartition("/")[2]
    name = f"{job.options['recipe']}-{base.replace(':', '-')}-{job.pk}"
    # A worker that died right after this comes here again with the same job.
    model, _ = Model.objects.get_or_create(
        job=job,
        defaults={
            "collection": job.collection,
            "name": name,
            "recipe": job.options["recipe"],
            "base": str(job.options["base"]),
            "folder": job.options["out"],
            "words": job.words,
            "summary": {key: job.result.get(key) for key in kept},
        },
    )
    return model
