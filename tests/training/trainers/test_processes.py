"""Two processes that share a training give the gradient of one, also when one of them runs out of memory once."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.instances import PATIENCE  # noqa: E402
from tests.training_sets import write_set  # noqa: E402
from training.trainers.tiny_bases import tiny_base, tiny_encoder  # noqa: E402

SHARED = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from training.jobs.folder import JobFolder
from training.recipes import data, table
from training.trainers.callback import JobCallback
from training.trainers.processes import is_leading, place_in_world, share_training
from training.trainers.recipe import TrainingTask
from training.trainers.training import open_recipe
kinds = (Path, Path, Path, int, str, int)
folder, base, rows, size, name, fails = (kind(one) for kind, one in zip(kinds, sys.argv[1:]))
given = {"preset": "tiny", "token_budget": 700, "max_length": 320, "batch": 7}
given |= {"lora_rank": 4} if name == "prism" else {"max_length": 32, "token_budget": 64}
options = table.recipe_options(name, given)
with share_training(folder, size, "cpu", program=["-c", sys.argv[7], *sys.argv[1:]]):
    recipe = open_recipe(TrainingTask(name, base, "tiny", data.read_training_set(rows), options, "cpu", True))
    trainer = recipe.trainer(JobCallback(JobFolder(folder), recipe.task, lambda: False, recipe.dev_margins))
    forward, calls = recipe.forward, []
    def fail_once(numbers):
        # In the second pass of the other process: the first of both has left a gradient.
        calls.append(numbers)
        if fails and place_in_world()[0] == 1 and len(calls) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory (raised by the test)")
        return forward(numbers)
    recipe.forward = fail_once
    for module in recipe.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    parts = trainer.gradients(trainer.epochs.step(3))
    if is_leading():
        grads = [value.grad for value in trainer.trained if value.grad is not None]
        budget = trainer.callback.progress.token_budget
        torch.save({"parts": parts, "grads": grads, "budget": budget}, folder / f"{size}{fails}.pt")
"""


def share(folder: Path, base: Path, rows: Path, size: int, name: str, fails: int) -> dict[str, Any]:
    """Compute the gradient of one step in so many processes."""
    (folder / "job").mkdir(exist_ok=True)
    args = [sys.executable, "-c", SHARED, folder / "job", base, rows, size, name, fails, SHARED]
    done = subprocess.run(list(map(str, args)), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = torch.load(folder / "job" / f"{size}{fails}.pt", weights_only=True)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["prism", "cross-encoder"])
def test_two_processes_give_the_gradient_of_one(name: str, tmp_path: Path) -> None:
    base = tiny_base(tmp_path / "base", hidden=32) if name == "prism" else tiny_encoder(tmp_path / "base", hidden=32)
    rows = write_set(tmp_path / "set")
    one, two, failed = (share(tmp_path, base, rows, *asked) for asked in ((1, name, 0), (2, name, 0), (2, name, 1)))
    assert any(bool(value.abs().max() > 1e-4) for value in one["grads"])
    assert failed["budget"] < two["budget"] == one["budget"]
    for other in (two, failed):
        assert other["parts"] == pytest.approx(one["parts"], rel=1e-5)
        for ours, theirs in zip(one["grads"], other["grads"], strict=True):
            assert torch.allclose(ours, theirs, atol=1e-5)
