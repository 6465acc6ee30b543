"""A job of kind `train`, from its folder to a published model."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from corpus.errors import BadInput
from training.jobs.folder import JobFolder
from training.recipes import data, table
from training.recipes.calibration import Calibration
from training.serving.publication import Record
from training.trainers.base import find_base, is_tiny
from training.trainers.finishing import TrainingOutcome, finish_training
from training.trainers.loop import Loop
from training.trainers.recipe import Recipe, TrainingTask
from training.trainers.world import Together


def train_model(folder: JobFolder, asked_to_stop: Callable[[], bool]) -> dict[str, Any]:
    """Train, choose, publish; steps, first and last loss, measures, and where the model lies.

    Raises BadInput for what cannot be trained, TrainingCancelled, publishing.MergeDiffers.
    """
    job = folder.job
    out = Path(job["out"])
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} is not empty: name a new or an empty folder")
    task = prepare_task(folder, job)
    folder.say(words=setup_label(task), phase="loading the base")
    with Together(folder.path, task.options.processes, task.device) as world:
        recipe = open_recipe(task)
        loop = Loop(folder, task, recipe, world, asked_to_stop)
        choice = loop.run()
        if not world.leads:
            return {}
        step = loop.chosen_step()
        chosen = {"step": step, "words": choice.words if choice else "the last one: there is no dev split"}
        record = replace(record_of(task, recipe), checkpoint=chosen, steps=loop.total)
        outcome = publish_model(folder, task, recipe, out, step, record)
    return job_result(folder, out, chosen, outcome)


def prepare_task(folder: JobFolder, job: dict[str, Any]) -> TrainingTask:
    """Everything that can be refused cheaply is refused here."""
    device = job.get("device") or "cpu"
    if device not in ("cpu", "cuda"):
        raise BadInput(f"device must be cpu or cuda, not {device!r}")
    if device == "cuda" and not torch.cuda.is_available():
        raise BadInput("the job asks for a GPU (cuda) and this machine has none that torch sees: take --device cpu")
    options = table.recipe_options(job["recipe"], job.get("options") or {})
    found = data.read_training_set(Path(job["data"]))
    base = find_base_folder(job, folder)
    limit = job.get("memory_mb")
    return TrainingTask(job["recipe"], base, str(job["base"]), found, options, device, is_tiny(base), limit)


def find_base_folder(job: dict[str, Any], folder: JobFolder) -> Path:
    """The folder of the base; tiny ones are made beside the job."""
    return find_base(str(job["base"]), folder.path / "bases")


def open_recipe(task: TrainingTask) -> Recipe:
    """The recipe at work."""
    if task.recipe == "prism":
        from training.trainers.prism import PrismRecipe

        return PrismRecipe(task)
    from training.trainers.cross_encoder import CrossEncoder

    return CrossEncoder(task)


def setup_label(task: TrainingTask) -> str:
    """What must stand beside every figure: "tiny model, CPU"."""
    parts = ["tiny model"] if task.tiny else []
    return ", ".join([*parts, "CPU"] if task.device == "cpu" else parts)


def record_of(task: TrainingTask, recipe: Recipe) -> Record:
    """What is known before the model is measured."""
    return Record(
        recipe=task.recipe,
        base=task.base_name,
        options=task.options.as_json(),
        evaluation={},
        calibration=Calibration(),
        dataset=task.data.collection,
        dataset_sha256=task.data.sha256,
        teacher=task.data.teacher,
        tiny=task.tiny,
        device=task.device,
        **recipe.record(),
    )


def publish_model(
    folder: JobFolder, task: TrainingTask, recipe: Recipe, out: Path, step: int, record: Record
) -> TrainingOutcome:
    """Measure base, checkpoint and merged model, and write the folder."""

    def report(phase: str) -> None:
        print(phase, flush=True)  # noqa: T201
        folder.say(phase=phase)

    if out.exists():
        out.rmdir()
    return finish_training(out, recipe.trained(folder.checkpoint(step)), task.data.dev, record, report=report)


def job_result(folder: JobFolder, out: Path, chosen: dict[str, Any], outcome: TrainingOutcome) -> dict[str, Any]:
    """As the command `train` prints it, and what the model's page shows."""
    losses = [line["loss"] for line in folder.lines() if "loss" in line]
    return {
        "steps": len(losses),
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "metrics": outcome.evaluation["merged"],
        "evaluation": outcome.evaluation,
        "calibration": outcome.calibration.as_json(),
        "gain": outcome.gain,
        "merge_difference": outcome.merge_difference,
        "checkpoint": chosen,
        "out": str(out),
    }
