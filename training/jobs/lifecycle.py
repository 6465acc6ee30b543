"""Services of training jobs: start, resume, use a model, publish a model."""

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
from training.models import Job, Model
from training.published.publication import base_name
from training.recipes import table
from training.recipes.data import open_manifest
from training.recipes.job_folder import JobFolder, check_new
from training.recipes.refusals import RefusedTraining
from training.recipes.tracking import check_tracker

SHARED = "_shared"  # The folder of jobs without a collection; no collection's name begins with an underscore.


def collection_folder(kind: str, collection: Collection | None) -> Path:
    """Return a collection's folder in VAR/jobs or VAR/models; `kind`: jobs or models."""
    return Path(settings.VAR) / kind / (collection.name if collection else SHARED)


@contextmanager
def translate_refusals() -> Iterator[None]:
    """Translate the messages of RefusedTraining, raised as BadInput."""
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
    """Queue a job. Raises BadInput for an unknown device."""
    if device not in ("cpu", "cuda"):
        raise BadInput(_("Device must be cpu or cuda, not %(device)s") % {"device": f"{device!r}"})
    # A random name, since the row that stores it does not have an id yet.
    folder = collection_folder("jobs", collection) / uuid4().hex
    job = Job.objects.create(
        collection=collection, kind=kind, options=dict(options), device=device, folder=str(folder), made_by=user
    )
    JobFolder(folder).write_request({"kind": kind, "device": device, **options})
    # After the commit: a worker that is notified earlier would not find the row.
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
    """Queue a training, whose model goes to `out`, by default a folder in VAR/models. Raises BadInput.

    `subset`: the part of the set to train on, as arguments of curves.subsets.write_subset.
    """
    options = table.recipe_options(recipe, option_values)
    # Without torch here, another machine trains, and checks its tracker itself before the job starts.
    if find_spec("torch"):
        check_tracker(options.tracking)
    entry = table.RECIPES[recipe]
    # Checked before the manifest is read, for a message that explains what the folder must be.
    if not fetch(data / "manifest.json").exists():
        raise BadOption(
            "data",
            _("%(data)s has no manifest.json: name the folder of an export of format %(format)s.")
            % {"data": data.name, "format": entry.format},
        )
    manifest, raw = open_manifest(data, entry.format)
    if out is not None:
        check_new(out)
    # The first stage is the stored run that the set's negatives come from, or BM25.
    run_name = str(((manifest.get("options") or {}).get("run") or {}).get("name", "")).removesuffix(".run")
    runs = Run.objects.filter(collection=collection, name=run_name, is_deleted=False).order_by("-pk")
    run = runs.first() if collection and run_name else None
    target = out or collection_folder("models", collection) / uuid4().hex
    job_options: dict[str, Any] = {
        "recipe": recipe,
        "data": str(data.resolve()),
        # Lineage finds the export by this hash, even if its folder has been moved.
        "data_sha256": sha256(raw).hexdigest(),
        "base": base,
        "out": str(target.resolve()),
        "options": dict(option_values),
    }
    job_options |= {"run": run.pk, "first_stage": f"run {run.name}"} if run else {}
    job_options |= {"subset": dict(subset)} if subset else {}
    return begin_job(kind=Job.Kind.TRAIN, options=job_options, collection=collection, device=device, user=user)


def resume_job(job: Job) -> bool:
    """Requeue a cancelled or failed job from its newest checkpoint. Return whether its state allowed it."""
    is_resumed = leases.resume(job, phase="waiting")
    if is_resumed:
        transaction.on_commit(worker_pool.notify_workers)
    return is_resumed


# For each kind of job that uses a model: the models that it scores or writes with.
USES: dict[str, tuple[str, ...]] = {
    Job.Kind.EVALUATE: ("base", "tuned"),
    Job.Kind.RERANK: ("tuned",),
    Job.Kind.ORDER: ("model",),
    Job.Kind.GENERATE: ("base", "tuned"),
}


def use_model(model: Model, kind: str, user: str = "", **job_options: object) -> Job:
    """Queue a job that scores with a model, or that writes texts for the dev split with base and model.

    `job_options`: `precision` and `max_new_tokens`, or neither for the job's defaults. Raises BadInput.
    """
    if table.is_embedding_recipe(model.recipe):
        raise BadInput(
            _("%(name)s is an embedding model, which scores no pairs: serve it with serve_model") % {"name": model.name}
        )
    training = model.job.options
    models = {name: training["base"] if name == "base" else model.folder for name in USES[kind]}
    options = {"models": models, "data": training["data"], "model": model.pk, "name": model.name, **job_options}
    return begin_job(kind=kind, options=options, collection=model.collection, device=model.job.device, user=user)


def publish_model(job: Job) -> Model:
    """Return the row of the model that a training wrote, created if necessary."""
    summary_keys = ("evaluation", "calibration", "gain", "rankings", "checkpoint", "merge_difference")
    # A base may be a path or a hub id, of which the model's name contains the last part.
    base = base_name(str(job.options["base"])).rpartition("/")[2]
    name = f"{job.options['recipe']}-{base.replace(':', '-')}-{job.number}"
    # Models of version 0.1.0 have the primary keys of their jobs in their names.
    if Model.objects.filter(collection=job.collection, name=name).exclude(job=job).exists():
        name += f".{job.pk}"
    # The row exists already if a worker died after this line and the job is repeated.
    model, _ = Model.objects.get_or_create(
        job=job,
        defaults={
            "collection": job.collection,
            "name": name,
            "recipe": job.options["recipe"],
            "base": str(job.options["base"]),
            "folder": job.options["out"],
            "words": job.words,
            "summary": {key: job.result.get(key) for key in summary_keys},
        },
    )
    return model
