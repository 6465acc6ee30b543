"""Two processes that share a training give the gradient of one, also when one of them runs out of memory once."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.instances import PATIENCE  # noqa: E402
from tests.training.recipes.test_bundles import row, write  # noqa: E402
from tests.training.trainers.scored import export_scores  # noqa: E402
from tests.training_sets import ask, write_set  # noqa: E402
from training.published.tiny_bases import tiny_base, tiny_encoder  # noqa: E402
from training.recipes.job_folder import JobFolder, read_lines  # noqa: E402
from training.trainers import processes  # noqa: E402

SHARED = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from training.recipes.job_folder import JobFolder
from training.recipes import data, table
from training.trainers.callback import JobCallback
from training.trainers.processes import is_first_process, group_position, share_training
from training.trainers.recipe import TrainingTask
from training.trainers.training import open_recipe
kinds = (Path, Path, Path, int, str, int)
folder, base, rows, size, name, fails = (kind(one) for kind, one in zip(kinds, sys.argv[1:]))
given = {"preset": "tiny", "token_budget": 700, "max_length": 320, "batch": 7}
given |= {"lora_rank": 4} if name != "cross-encoder" else {"max_length": 32, "token_budget": 64}
given |= {"loss": "point+list+rank", "token_budget": 6000} if name == "ablation" else {}
options = table.recipe_options(name, given)
with share_training(folder, size, "cpu", program=["-c", sys.argv[7], *sys.argv[1:]]):
    recipe = open_recipe(TrainingTask(name, base, "tiny", data.read_training_set(rows), options, "cpu", True))
    if name == "prism-extend":
        recipe.assign_teacher_scores(JobFolder(folder), lambda: False)
    trainer = recipe.trainer(JobCallback(JobFolder(folder), recipe.task, lambda: False, recipe.dev_margins))
    forward, calls = recipe.forward, []
    def fail_once(numbers):
        # In the second pass of the other process: the first of both has left a gradient.
        calls.append(numbers)
        if fails and group_position()[0] == 1 and len(calls) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory (raised by the test)")
        return forward(numbers)
    recipe.forward = fail_once
    for module in recipe.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    parts = trainer.gradients(trainer.epochs.step(3))
    if is_first_process():
        grads = [value.grad for value in trainer.trained_weights if value.grad is not None]
        budget = trainer.callback.progress.token_budget
        torch.save({"parts": parts, "grads": grads, "budget": budget}, folder / f"{size}{fails}.pt")
"""


def share(folder: Path, base: Path, rows: Path, size: int, name: str, fails: int) -> dict[str, Any]:
    """Compute the gradient of one step in so many processes."""
    job = folder / f"job-{size}-{fails}"
    job.mkdir()
    args = [sys.executable, "-c", SHARED, job, base, rows, size, name, fails, SHARED]
    done = subprocess.run(list(map(str, args)), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = torch.load(job / f"{size}{fails}.pt", weights_only=True)
    return found


@pytest.mark.weekly
@pytest.mark.parametrize("name", ["prism", "prism-extend", "cross-encoder", "ablation"])
def test_two_processes_give_the_gradient_of_one(name: str, tmp_path: Path) -> None:
    make = tiny_encoder if name == "cross-encoder" else tiny_base
    base = make(tmp_path / "base", hidden=32)
    rows = write_set(tmp_path / "set", documents=16 if name == "ablation" else 6)
    one, two, failed = (share(tmp_path, base, rows, *asked) for asked in ((1, name, 0), (2, name, 0), (2, name, 1)))
    assert any(bool(value.abs().max() > 1e-4) for value in one["grads"])
    assert failed["budget"] < two["budget"] == one["budget"]
    for other in (two, failed):
        assert other["parts"] == pytest.approx(one["parts"], rel=1e-5)
        for ours, theirs in zip(one["grads"], other["grads"], strict=True):
            assert torch.allclose(ours, theirs, atol=1e-5)


ROLLOUTS = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from training.erank.grpo import ErankGrpo, RoundCallback
from training.recipes.job_folder import JobFolder
from training.trainers.processes import is_first_process, group_position, share_training
from training.trainers.training import prepare_task
folder, size = JobFolder(Path(sys.argv[1])), int(sys.argv[2])
class Keep(RoundCallback):
    def on_pre_optimizer_step(self, args, state, control, **rest):
        if int(state.global_step) == 0 and is_first_process():
            grads = {name: value.grad for name, value in rest["model"].named_parameters()}
            torch.save(grads, folder.path / "grads.pt")
task = prepare_task(folder, folder.job)
with share_training(folder.path, size, "cpu", program=["-c", sys.argv[3], *sys.argv[1:]]):
    recipe = ErankGrpo(task)
    seen = []
    def sample(prompts, trainer):
        # The same answers to a document in any number of processes: two that score it, and one that is malformed.
        rows = [max(place, -1 - place) for place in map(int, prompts)]
        seen.extend(recipe.rows[row].query_id for row in rows)
        # Before the gradients are shared: the leading process ends without waiting for what another writes afterwards.
        (folder.path / f"queries-{group_position()[0]}.txt").write_text("\\n".join(sorted(set(seen))))
        texts = [f"<think>{row} {at % 3}</think><answer>{(row * 3 + at % 3 * 5) % 11}</answer>" if at % 3 < 2 else "x"
                 for at, row in enumerate(rows)]
        answers = [recipe.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        return {"prompt_ids": [recipe.encoded[row].ids for row in rows], "completion_ids": answers, "logprobs": None}
    recipe.sample = sample
    callback = Keep(folder, recipe.task, lambda: False, recipe.dev_margins)
    trainer = recipe.make_trainer(folder, callback, recipe.reference_scores(folder))
    callback.train(trainer)
"""


def train_rollouts(folder: Path, data: Path, size: int) -> Path:
    """Train one round by GRPO in so many processes; return the folder with the gradient of its only step."""
    options = {"batch": 12, "mini_batch": 12, "group": 3, "epochs": 1, "max_response": 24, "clip": 0.0,
               "processes": size, "rollouts_every": 1}  # fmt: skip
    job = ask(folder / str(size), "erank-grpo", data, "tiny:qwen3", **options)
    args = [sys.executable, "-c", ROLLOUTS, str(job.path), str(size), ROLLOUTS]
    done = subprocess.run(args, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return job.path


@pytest.mark.weekly
def test_rollouts_of_whole_queries_in_two_processes_give_the_gradient_of_one(tmp_path: Path) -> None:
    """Four queries of three documents: each process has all rollouts of two of them."""
    data = export_scores(tmp_path / "data", queries=4, dev=0)
    one, two = (train_rollouts(tmp_path, data, size) for size in (1, 2))
    ours, theirs = (torch.load(path / "grads.pt", weights_only=True) for path in (one, two))
    assert max(float(value.abs().max()) for value in ours.values()) > 1e-4
    for name, value in ours.items():
        assert torch.allclose(value, theirs[name], atol=1e-5), name
    alone, *shared = ((path / name).read_text().split() for path, name in (
        (one, "queries-0.txt"), (two, "queries-0.txt"), (two, "queries-1.txt"),
    ))  # fmt: skip
    assert len(alone) == 4 and sorted([*shared[0], *shared[1]]) == alone
    kept = [{(line["query_id"], line["doc_id"], line["text"]): (line["reward"], line["advantage"], line["rank"])
             for line in read_lines(path / "rollouts.jsonl")} for path in (one, two)]  # fmt: skip
    assert len(kept[0]) == 36 and kept[0] == kept[1]
    lines = [next(line for line in JobFolder(path).read_metrics() if "reward_mean" in line) for path in (one, two)]
    assert lines[0]["reward_mean"] == pytest.approx(lines[1]["reward_mean"])


BUNDLES = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from training.recipes.job_folder import JobFolder
from training.trainers import callback, rtriever
from training.trainers.contrastive import InBatchLoss
from training.trainers.processes import is_first_process, group_position, share_training
from training.trainers.training import open_recipe, prepare_task
folder, size, fails = JobFolder(Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
class Keep(callback.JobCallback):
    def on_pre_optimizer_step(self, args, state, control, **rest):
        if int(state.global_step) == 0 and is_first_process():
            grads = {name: value.grad for name, value in rest["model"].named_parameters() if value.grad is not None}
            torch.save({"grads": grads, "budget": self.progress.token_budget}, folder.path / "grads.pt")
rtriever.JobCallback = Keep
embed, passes = InBatchLoss.embed_minibatch, []
def fail_once(self, sentence_feature, begin, end, with_grad, *rest, **more):
    # In the second pass without gradients, or with them, of the last process; the first has left some.
    passes.append(with_grad)
    last = group_position()[0] == size - 1
    if last and fails == ("replay" if with_grad else "embed") and passes.count(with_grad) == 2:
        raise torch.OutOfMemoryError("CUDA out of memory (raised by the test)")
    return embed(self, sentence_feature, begin, end, with_grad, *rest, **more)
InBatchLoss.embed_minibatch = fail_once
task = prepare_task(folder, folder.job)
with share_training(folder.path, size, "cpu", program=["-c", sys.argv[4], *sys.argv[1:]]):
    open_recipe(task).train(folder, lambda: False)
"""


@pytest.mark.weekly
def test_a_retriever_in_two_processes_has_the_gradient_of_one_also_when_one_runs_out_of_memory(tmp_path: Path) -> None:
    rows = write(tmp_path / "set", [row(number) for number in range(8)])
    found = {}
    for size, fails in ((1, "no"), (2, "no"), (1, "replay"), (2, "embed"), (2, "replay")):
        options = {"epochs": 1, "batch": 8, "max_steps": 1, "token_budget": 64, "max_length": 32, "clip": 0.0,
                   "processes": size}  # fmt: skip
        job = ask(tmp_path / f"{size}-{fails}", "rtriever", rows, "tiny:qwen3", **options)
        args = [sys.executable, "-c", BUNDLES, str(job.path), str(size), fails, BUNDLES]
        done = subprocess.run(args, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        found[size, fails] = torch.load(job.path / "grads.pt", weights_only=True)
    ours = found.pop((1, "no"))
    assert max(float(value.abs().max()) for value in ours["grads"].values()) > 1e-4
    for (_size, fails), one in found.items():
        assert one["budget"] == 64 if fails == "no" else one["budget"] < 64
        for name, value in ours["grads"].items():
            assert torch.allclose(value, one["grads"][name], atol=1e-5), name


def test_a_group_that_cannot_be_joined_leaves_no_process_watcher_or_variable_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    children: list[subprocess.Popen[str]] = []
    spawn_child = processes.spawn_child

    def spawn(*args: Any) -> subprocess.Popen[str]:
        children.append(spawn_child(*args))
        return children[-1]

    def fail(*_args: Any) -> None:
        raise RuntimeError("the group cannot be joined")

    monkeypatch.setattr(processes, "spawn_child", spawn)
    monkeypatch.setattr(processes.dist, "init_process_group", fail)
    threads = set(threading.enumerate())
    try:
        with (
            pytest.raises(RuntimeError, match="cannot be joined"),
            processes.share_training(tmp_path, 2, "cpu", program=["-c", "import time; time.sleep(600)"]),
        ):
            pytest.fail("the training began without its group")
        assert len(children) == 1 and children[0].poll() is not None
        assert not set(names) & set(os.environ)
        for watcher in set(threading.enumerate()) - threads:
            watcher.join(PATIENCE)
            assert not watcher.is_alive()
    finally:
        for child in children:
            child.kill()
        for name in names:
            os.environ.pop(name, None)
