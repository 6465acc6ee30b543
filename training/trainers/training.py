"""The job `train`, from its folder to a published model."""

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from corpus.errors import BadInput, BadOption
from training.jobs.first_stage import read_first_stage
from training.published.base import find_base, is_tiny
from training.published.publication import Record, describe_setup, name_base
from training.published.torch_memory import free_memory, is_out_of_memory
from training.recipes import table
from training.recipes.calibration import Calibration
from training.recipes.job_folder import JobFolder, check_new
from training.recipes.subsets import write_subset
from training.recipes.tracking import check_tracker
from training.trainers.finishing import finish_training
from training.trainers.processes import is_first_process, share_training
from training.trainers.recipe import Recipe, TrainingTask


def train_model(folder: JobFolder, asked_to_stop: Callable[[], bool]) -> dict[str, Any]:
    """Train a model and publish its best checkpoint; return the result for the job's row and its page.

    1. Check the request, and find the training set and the base.
    2. Train in as many processes as the options say; only the first one continues.
    3. Publish the chosen checkpoint.

    Raises BadInput, TrainingCancelled and publishing.MergeDiffers.
    """
    job = folder.job
    out = Path(job["out"])
    # Checked before hours of training; the rename at the end fails for a folder that is not empty.
    check_new(out)
    task = prepare_task(folder, job)
    with share_training(folder.path, task.options.processes, task.device):
        if is_first_process():
            if rates := table.find_far_rate(task.recipe, task.options):
                print("warning:", table.FAR_RATE % rates, flush=True)  # noqa: T201
            folder.update_state(words=describe_setup(task.tiny, task.device), phase="loading the base")
        recipe = open_recipe(task)
        step, reason = recipe.train(folder, asked_to_stop)
        if not is_first_process():
            return {}
    record = publish_model(folder, recipe, out, step, reason)
    losses = [line["loss"] for line in folder.read_metrics() if "loss" in line]
    return {
        "steps": len(losses),
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "metrics": record.evaluation["merged"],
        "evaluation": record.evaluation,
        "calibration": asdict(record.calibration),
        "gain": record.gain,
        "rankings": record.rankings,
        "merge_difference": record.merge_difference,
        "checkpoint": record.checkpoint,
        "out": str(out),
    }


def publish_model(folder: JobFolder, recipe: Recipe, out: Path, step: int, reason: str) -> Record:
    """Publish the checkpoint of a step, chosen for this reason; on the CPU if it does not fit on the GPU."""
    task = recipe.task
    base, base_source = name_base(task.base_name, task.base)
    record = Record(
        recipe=task.recipe,
        base=base,
        base_source=base_source,
        options=asdict(task.options),
        evaluation={},
        calibration=Calibration(),
        dataset=task.data.collection,
        dataset_sha256=task.data.sha256,
        synthetic_queries=int((task.data.manifest.get("counts") or {}).get("synthetic_queries") or 0),
        teacher=task.data.teacher,
        tiny=task.tiny,
        device=task.device,
        checkpoint={"step": step, "words": reason},
        steps=[line["steps"] for line in folder.read_metrics() if "steps" in line][-1],
        **recipe.record(),
    )

    def report(phase: str) -> None:
        print(phase, flush=True)  # noqa: T201
        folder.update_state(phase=phase)

    # Finishing loads the checkpoint from disk.
    recipe.model = None
    free_memory()
    # Publishing renames a folder to this name.
    if out.exists():
        out.rmdir()
    finish = partial(
        finish_training, dev=task.data.dev, record=record, report=report, first_stage=read_first_stage(folder)
    )
    try:
        return finish(out, recipe.trained(folder.checkpoint(step)))
    except (RuntimeError, MemoryError) as error:
        if task.device == "cpu" or not is_out_of_memory(error):
            raise
    free_memory()
    report("out of memory: publishing on the CPU")
    recipe.task = replace(task, device="cpu")
    return finish(out, recipe.trained(folder.checkpoint(step)))


def prepare_task(folder: JobFolder, job: dict[str, Any]) -> TrainingTask:
    """Return a job as a task for its recipe. Raises BadInput for all errors that can be found at little cost."""
    device = job.get("device") or "cpu"
    if device not in ("cpu", "cuda"):
        raise BadInput(f"Device must be cpu or cuda, not {device!r}")
    if device == "cuda" and not torch.cuda.is_available():
        raise BadOption("device", "The job asks for a GPU (cuda), and torch sees none on this machine: choose cpu.")
    options = table.recipe_options(job["recipe"], job.get("options") or {})
    check_tracker(options.tracking)
    entry, source = table.RECIPES[job["recipe"]], Path(job["data"])
    # A point of a learning curve trains on a subset of the export, written into the job's folder.
    if subset := job.get("subset"):
        source = write_subset(source, folder.path / "data", entry.format, **subset)
    data = import_named(entry.reader)(source)
    base = find_base(str(job["base"]), folder.path / "bases")
    return TrainingTask(
        recipe=job["recipe"],
        base=base,
        base_name=str(job["base"]),
        data=data,
        options=options,
        device=device,
        tiny=is_tiny(base),
        memory_mb=job.get("memory_mb"),
        cache=folder.path / "tokens",
    )


def open_recipe(task: TrainingTask) -> Recipe:
    """Return the recipe of a task, an object of the class in the table."""
    recipe: Recipe = import_named(table.RECIPES[task.recipe].path)(task)
    return recipe


def import_named(path: str) -> Any:
    """Return the object with a dotted path."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
