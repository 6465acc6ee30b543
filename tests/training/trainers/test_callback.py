"""Any trainer of transformers writes the files of a job: lines, measures, checkpoints."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

from tests.training_sets import write_set
from training.published.tiny_bases import tiny_base
from training.recipes import data, table
from training.recipes.job_folder import JobFolder
from training.trainers import callback
from training.trainers.callback import JobCallback
from training.trainers.memory import DoesNotFit
from training.trainers.recipe import TrainingTask

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, data.TrainingSet]:
    folder = tmp_path_factory.mktemp("callback")
    return tiny_base(folder / "base", hidden=16, layers=1), data.read_training_set(write_set(folder / "set", queries=5))


def train(
    folder: JobFolder, parts: tuple[Path, data.TrainingSet], *, worse: bool = False, **options: Any
) -> tuple[int, str]:
    """Train a plain language model by a library's trainer; what it scores is its own bias, or always worse."""
    base, rows = parts
    folder.path.mkdir(exist_ok=True)
    given = {"preset": "tiny", "max_steps": 8, "batch": 2, "evaluate_every": 4, "checkpoint_every": 2, **options}
    task = TrainingTask("prism", base, "tiny", rows, table.recipe_options("prism", given), "cpu", True)
    model = AutoModelForCausalLM.from_pretrained(base, attention_dropout=0.3)

    def score(chosen: Any) -> list[float]:
        sign = -1.0 if worse and told.progress.step > 2 else 1.0
        return [sign * (2.0 * row.label - 1.0) for row in chosen]

    told = JobCallback(folder, task, lambda: False, score)
    examples = [{"input_ids": torch.tensor([n, n + 1, n + 2]), "labels": torch.tensor([n] * 3)} for n in range(5, 25)]
    trainer = Trainer(model, told.arguments(TrainingArguments, 20), train_dataset=examples, callbacks=[told])
    return told.train(trainer)


def test_a_library_trainer_writes_lines_measures_and_checkpoints(parts, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = JobFolder(tmp_path / "job")
    step, why = train(folder, parts)
    steps, measured = ([one for one in folder.read_metrics() if key in one] for key in ("loss", "dev"))
    assert [one["step"] for one in steps] == list(range(1, 9)) and [one["step"] for one in measured] == [4, 8]
    assert {"epoch", "lr", "tokens_per_s", "memory_mb", "seconds", "grad_norm"} <= set(steps[-1])
    assert steps[0]["loss"] > 0 and steps[-1]["steps"] == 8 and measured[0]["dev"]["auc"] == 1.0
    assert step == 4 and "best mean rank" in why and folder.checkpoint_steps() == [4, 6, 8]
    assert folder.state["steps"] == folder.state["total"] == 8
    found = EventAccumulator(str(folder.path / "tensorboard")).Reload()
    assert [one.step for one in found.Scalars("train/loss")] == list(range(1, 9))
    assert [(one.step, one.value) for one in found.Scalars("eval/auc")] == [(4, 1.0), (8, 1.0)]
    # Killed before the measurement it measures, and then has nothing left to do.
    kept = folder.checkpoint(8) / "trainer.json"
    progress = json.loads(kept.read_text())
    kept.write_text(json.dumps(progress | {"measured": {"4": progress["measured"]["4"]}}))
    assert train(folder, parts) == (step, why)
    assert "8" in json.loads(kept.read_text())["measured"]


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_tracker_that_is_asked_for_is_told_where_to_write(name, parts, tmp_path, monkeypatch):
    for variable in ("WANDB_DIR", "WANDB_MODE", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "WANDB_PROJECT"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "mine")
    monkeypatch.setattr(os, "environ", dict(os.environ))
    options = table.recipe_options("prism", {"preset": "tiny", "tracking": name})
    task = TrainingTask("prism", parts[0], "tiny", parts[1], options, "cpu", True)
    args = JobCallback(JobFolder(tmp_path), task, lambda: False, lambda rows: []).arguments(TrainingArguments, 20)
    assert args.report_to == [name]
    assert os.environ["MLFLOW_TRACKING_URI"] == f"file://{tmp_path}/mlruns"
    assert os.environ["WANDB_DIR"] == str(tmp_path) and os.environ["WANDB_MODE"] == "offline"
    assert os.environ["MLFLOW_ALLOW_FILE_STORE"] == "mine"


def test_early_stopping_ends_after_so_many_measurements_without_a_better_one(parts, tmp_path):
    folder = JobFolder(tmp_path / "job")
    step, _ = train(folder, parts, worse=True, early_stopping=2, evaluate_every=2)
    assert step == 2 and [one["step"] for one in folder.read_metrics() if "dev" in one] == [2, 4, 6]


def test_the_share_of_the_devices_rate_is_said_where_it_is_known(monkeypatch):
    for name, rate in (("NVIDIA H100 80GB HBM3", 989e12), ("NVIDIA L40", 181e12), ("Something else", 0.0)):
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda name=name: name)
        assert callback.device_rate("cuda") == rate
    assert callback.device_rate("cpu") == 0.0
    model = torch.nn.Sequential(torch.nn.Linear(10, 10, bias=False), torch.nn.Linear(10, 5, bias=False))
    model[0].requires_grad_(False)
    assert callback.flops_per_token(model) == 4 * 100 + 6 * 50


def test_the_optimiser_has_its_memory_before_the_first_step_and_moves_no_weight_or_is_refused(monkeypatch):
    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, weight_decay=0.5)
    before = [value.detach().clone() for value in layer.parameters()]
    callback.reserve_optimizer(optimizer)
    for value, was in zip(layer.parameters(), before, strict=True):
        assert torch.equal(value, was) and value.grad is None
        state = optimizer.state[value]
        assert int(state["step"]) == 0 and not state["exp_avg"].any() and not state["exp_avg_sq"].any()
    assert optimizer.param_groups[0]["lr"] == 0.1
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    monkeypatch.setattr(optimizer, "step", run_out_of_memory)
    with pytest.raises(DoesNotFit, match="lora_rank"):
        callback.reserve_optimizer(optimizer)
    assert all(value.grad is None for value in layer.parameters()) and optimizer.param_groups[0]["lr"] == 0.1


def run_out_of_memory(*given: Any, **named: Any) -> None:
    """The error is torch's own."""
    raise torch.OutOfMemoryError("CUDA out of memory (raised by the test)")


def test_a_step_that_does_not_fit_says_what_to_lower(parts, tmp_path, monkeypatch):
    """Where a library's trainer cannot do a step again with less."""
    monkeypatch.setattr(Trainer, "training_step", run_out_of_memory)
    with pytest.raises(DoesNotFit, match=r"token_budget \(3,072\)"):
        train(JobFolder(tmp_path / "job"), parts)
