"""Services of trainings for pages, the API and commands: start, control, use a model."""

from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from actions.services import Actor, action
from annotation.models.snapshots import Snapshot
from corpus.errors import BadInput, BadOption
from corpus.models import Collection
from jobs import leases
from training.jobs import lifecycle, pages
from training.jobs.options import TrainingOptions, UseOptions
from training.models import Job, Model
from training.recipes import base_models
from training.recipes.data import named_format
from training.recipes.table import RECIPES


@action("training.started", key="job", noted=lambda options, _job: {"recipe": options.recipe})
def start_training(
    actor: Actor, collection: Collection | None, options: TrainingOptions, *, out: Path | None = None
) -> Job:
    """Put a training into the queue; a worker with the training extra does it. Raises BadOption and BadInput."""
    job = lifecycle.begin_training(**read_request(actor, collection, options), out=out)
    job.refresh_from_db()  # A trigger sets its number.
    return job


ACTS = {"cancel": leases.ask_to_cancel, "go-on": lifecycle.resume_job}


@action("training.control", key="job", noted=lambda act, _job: {"what": act})
def control_job(_actor: Actor, job: Job, act: str) -> Job:
    """Cancel a job, or let it go on from its newest checkpoint. Raises BadInput where its state does not allow it."""
    if not ACTS[act](job):
        raise BadInput(_("No changes made: the job's state no longer allows this action."))
    job.refresh_from_db()
    return job


@action("training.control", key="job", noted=lambda _, job: {"model": job.options["model"], "what": job.kind})
def use_model(actor: Actor, model: Model, options: UseOptions, *, act: str) -> Job:
    """Begin a job with a model: evaluate it, rerank with it, order the queue by it, or measure what it writes."""
    if reason := pages.why_not():
        raise BadInput(reason)
    job = lifecycle.use_model(model, act, user=actor.name, **options.model_dump())
    job.refresh_from_db()  # A trigger sets its number.
    return job


def read_request(actor: Actor, collection: Collection | None, options: TrainingOptions) -> dict[str, Any]:
    """Return the arguments that begin_training and begin_curve share. Raises BadOption and BadInput.

    Commands may name any folder; pages and programs only exports and models of the collection, and the site's bases.
    """
    base, is_tiny = base_models.of_command(options.base), False
    data, option_values = Path(options.data), options.option_values
    if actor.scope is not None:
        assert collection is not None
        if reason := pages.why_not():
            raise BadInput(reason)
        # A program names an export's number, a page its folder.
        folders = {str(row.number): row.folder for row in exports_of(collection)}
        folder = folders.get(options.data, options.data)
        if folder not in dict(pages.training_sets(collection)):
            raise BadOption("data", _("No export of this collection with this number is a training set"))
        data = Path(folder)
        base, is_tiny = _find_base(collection, options.base)
        option_values = ({"preset": "tiny"} if is_tiny else {}) | option_values
    check_fit(options.recipe, data, base)
    return {
        "recipe": options.recipe,
        "data": data,
        "base": base,
        "option_values": option_values,
        "collection": collection,
        "device": options.device,
        "user": actor.name,
    }


def check_fit(recipe: str, data: Path, base: str) -> None:
    """Raise BadOption for a base model or a training set that does not fit the recipe."""
    entry, problems = RECIPES[recipe], []
    # Embedders are trained from causal models and from encoders.
    fits = entry.base == "embedder" or (base == "tiny:encoder") == (entry.base == "encoder")
    if base.startswith(base_models.TINY) and not fits:
        message = _(
            "The recipe %(recipe)s cannot train this base model: cross-encoder takes the encoder, rtriever any."
        )
        problems.append(("base", message % {"recipe": recipe}))
    # A folder without a manifest is refused later.
    export_format = named_format(data)
    if export_format and export_format != entry.format:
        message = _("The recipe %(recipe)s learns from exports in the format %(wanted)s; this one is %(found)s.")
        problems.append(("data", message % {"recipe": recipe, "wanted": entry.format, "found": export_format}))
    if problems:
        raise BadOption(*problems[0], others=problems[1:])


def exports_of(collection: Collection) -> list[Snapshot]:
    """Return the exports of a collection that a training can learn from, the newest first."""
    folders = [folder for folder, _label in pages.training_sets(collection)]
    rows = Snapshot.objects.filter(collection=collection, folder__in=folders)
    return sorted(rows, key=lambda row: folders.index(row.folder))


def _find_base(collection: Collection, name: str) -> tuple[str, bool]:
    """Return the base that a page or a program names, and whether it is a tiny model."""
    if name in base_models.TINY_BASES:
        return name, True
    for model in pages.base_choices(collection):
        if name in (model.folder, model.name):
            return model.folder, model.words.startswith("tiny")
    try:
        return base_models.of_page(name), False
    except BadInput as error:
        raise BadOption("base", str(error)) from None
