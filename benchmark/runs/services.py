"""Services of runs: make, import, delete."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext as _

from actions.services import Actor, action
from benchmark.models import Run
from benchmark.runs import importing
from benchmark.runs.builders import RUNS
from benchmark.runs.importing import ImportedRun
from benchmark.runs.model_folders import fits, offered_folders
from benchmark.runs.options import RunImportOptions, RunOptions
from corpus.errors import BadInput, BadOption
from corpus.importing import staging
from corpus.models import Collection
from jobs import leases
from judges.campaigns.estimates import Estimate


@action(RUNS.started, noted=lambda _options, run: RUNS.describe_start(run))
def make_run(actor: Actor, collection: Collection, options: RunOptions) -> Run:
    """Start a run, which a worker makes; the same options again resume it. Raises BadOption and BadInput.

    A run from a search endpoint without a name is the day's next one, unless the day's last one is unfinished.
    """
    recipe = _read_recipe(actor, options)
    if options.is_dated:
        recipe["name"] = RUNS.name_dated(collection, recipe)
    return RUNS.start_or_join(collection, recipe, actor.name)


def estimate_run(actor: Actor, collection: Collection, options: RunOptions) -> Estimate | None:
    """Estimate the model calls and the cost of making a run; nothing starts."""
    return RUNS.estimate_cost(collection, _read_recipe(actor, options))


def _read_recipe(actor: Actor, options: RunOptions) -> dict[str, Any]:
    """Return the recipe of a run. Only commands may name any folder."""
    recipe = options.for_job()
    if actor.scope is not None and options.model:
        if options.model not in offered_folders(partial(fits, Run.Kind(options.system))):
            raise BadOption("model", _("There is no such folder among the base models of this site."))
        recipe["model"] = str(Path(settings.BASE_MODELS) / options.model)
    return recipe


@action("run.control", noted=lambda _options, run: {"run": run.name, "what": "delete"})
def delete_run(actor: Actor, run: Run) -> Run:
    """Delete a run: it disappears from every table, and its name is free. Its rankings stay for qrels and reports."""
    leases.cancel(run)
    Run.objects.filter(pk=run.pk).update(is_deleted=True)
    return run


@action("runs.imported", noted=lambda _options, runs: {"runs": [run.name for run, _counts in runs]})
def import_runs(
    actor: Actor,
    collection: Collection,
    options: RunImportOptions,
    *,
    files: Mapping[str, Path],
    columns: Mapping[str, str] | None = None,
    progress: staging.ImportProgress = staging.ignore_progress,
) -> list[ImportedRun]:
    """Import runs by their names, all or none. Raises BadInput with the lines that have problems."""
    parameters = options.model_dump(exclude={"run"})
    return importing.import_runs(collection, files, actor.name, columns=columns, progress=progress, **parameters)


def import_uploads(
    actor: Actor, collection: Collection, options: RunImportOptions, uploads: Sequence["UploadedFile[Any]"]
) -> list[ImportedRun]:
    """Import uploaded files, each as a run named after its file; a single file may be named by the options."""
    if options.run and len(uploads) > 1:
        message = _("A name can be given for one file only. Several files keep their own names.")
        raise BadOption("run", message)
    names = [options.run or importing.run_name(upload.name or "run") for upload in uploads]
    if len(set(names)) < len(names):
        raise BadInput(_("Two files have the same name: each run needs its own name"))
    with importing.saved_uploads(uploads) as paths:
        return import_runs(actor, collection, options, files=dict(zip(names, paths, strict=True)))
