"""The trainer as a process: killed and resumed, refused; two that share a training give the gradient of one."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("torch")

import torch

from corpus.errors import BadInput
from tests.instances import PATIENCE, ROOT, until
from tests.training.recipes.test_bundles import row, write
from tests.training.trainers.learnable import export_scores
from tests.training_sets import ask, write_set
from training import trainer
from training.published.base import find_base
from training.published.tiny_bases import tiny_base
from training.recipes.data import read_training_set
from training.recipes.job_folder import JobFolder, TrainingCancelled, read_lines
from training.trainers import processes

OPTIONS = {"max_steps": 40, "lora_rank": 4, "checkpoint_every": 4, "evaluate_every": 20}
LONG = {"max_steps": 2000, "epochs": 1000, "evaluate_every": 1000, "processes": 2}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A tiny base and a training set."""
    folder = tmp_path_factory.mktemp("trainer")
    return tiny_base(folder / "base", hidden=32), write_set(folder / "set")


def prism(path: Path, parts: tuple[Path, Path], **options: Any) -> JobFolder:
    return ask(path, "prism", parts[1], str(parts[0]), **{**OPTIONS, **options})


def start(folder: JobFolder) -> subprocess.Popen[bytes]:
    args = [sys.executable, "-m", "training.trainer", str(folder.path)]
    with folder.log.open("ab") as log:
        return subprocess.Popen(args, cwd=ROOT, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"})


def losses(folder: JobFolder) -> list[tuple[int, float]]:
    return [(line["step"], line["loss"]) for line in folder.read_metrics() if "loss" in line]


def reached(folder: JobFolder, step: int) -> bool:
    return bool(losses(folder)) and losses(folder)[-1][0] >= step


OTHERS: dict[str, dict[str, Any]] = {
    "cross-encoder": {"batch": 4},
    "ablation": {"batch": 2, "lora_rank": 4, "loss": "point+list+rank", "negatives": 3},
    "prism-extend": {"batch": 4, "lora_rank": 4},
    "erank-grpo": {"batch": 6, "mini_batch": 6, "group": 2, "max_response": 8, "epochs": 8, "rollouts_every": 1},
}


@pytest.mark.weekly
@pytest.mark.parametrize("recipe", OTHERS)
def test_a_killed_training_goes_on_with_the_same_losses(recipe, parts, tmp_path):
    """Recipe prism is killed in the queue (tests/jobs/test_training_jobs.py)."""
    options = {"max_steps": 16, "checkpoint_every": 3, "evaluate_every": 16, **OTHERS[recipe]}
    base, rows = "tiny:encoder" if recipe == "cross-encoder" else str(parts[0]), parts[1]
    if recipe == "erank-grpo":
        base, rows = "tiny:qwen3", export_scores(tmp_path / "scores", queries=4, dev=2)
    whole, killed = (ask(tmp_path / name, recipe, rows, base, **options) for name in ("whole", "killed"))
    assert start(whole).wait(PATIENCE) == 0, whole.log.read_text()
    child = start(killed)
    until(lambda: reached(killed, 7))
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not reached(killed, 16)
    assert start(killed).wait(PATIENCE) == 0, killed.log.read_text()
    steps, figures = zip(*losses(killed), strict=True)
    assert steps == tuple(range(1, 17)) and figures == pytest.approx([loss for _, loss in losses(whole)], abs=1e-6)
    if recipe == "erank-grpo":
        texts = [read_lines(folder.path / "rollouts.jsonl") for folder in (whole, killed)]
        first, second = ([(line["step"], line["text"]) for line in lines] for lines in texts)
        assert first == second
        line = next(line for line in whole.read_metrics() if "reward_mean" in line)
        assert {"kl", "response_tokens", "malformed", "clip_share", "reward_by_kind"} <= set(line)


@pytest.mark.weekly
def test_two_processes_train_measure_and_publish_as_one_does(parts, tmp_path):
    folders = []
    for size in (1, 2):
        options = {"max_steps": 6, "evaluate_every": 3, "checkpoint_every": 2, "processes": size}
        folders.append(prism(tmp_path / str(size), parts, **options))
        assert start(folders[-1]).wait(PATIENCE) == 0, folders[-1].log.read_text()
    (_, wanted), (steps, figures) = (zip(*losses(folder), strict=True) for folder in folders)
    assert steps == tuple(range(1, 7)) and figures == pytest.approx(wanted, rel=1e-5)
    dev = [[line["dev"]["label_pearson"] for line in folder.read_metrics() if "dev" in line] for folder in folders]
    assert len(dev[0]) == 2 and dev[0] == pytest.approx(dev[1], abs=1e-4)
    assert folders[1].state["state"] == "finished" and (tmp_path / "2" / "out" / "reranker.json").exists()


@pytest.mark.weekly
def test_two_processes_are_cancelled_together_and_go_on(parts, tmp_path):
    folder = prism(tmp_path, parts, **LONG, checkpoint_every=500)
    child = start(folder)
    until(lambda: reached(folder, 3))
    child.terminate()
    assert child.wait(PATIENCE) == 3
    (step,) = folder.checkpoint_steps()
    assert folder.state["state"] == "cancelled" and losses(folder)[-1][0] == step
    options = {**folder.job["options"], "max_steps": step + 2, "evaluate_every": step + 2}
    folder.write_request({**folder.job, "options": options})
    assert start(folder).wait(PATIENCE) == 0, folder.log.read_text()
    assert losses(folder)[-1][0] == step + 2


@pytest.mark.weekly
def test_a_process_that_dies_ends_the_training_that_it_shared(parts, tmp_path):
    folder = prism(tmp_path, parts, **LONG, checkpoint_every=2)
    child = start(folder)
    until(lambda: reached(folder, 3))
    (other,) = psutil.Process(child.pid).children()
    other.kill()
    assert child.wait(PATIENCE) == 1
    assert folder.checkpoint_steps() and not (tmp_path / "out").exists()


def test_what_is_cancelled_says_so_in_its_exit_code(monkeypatch, tmp_path):
    def cancelled(*_: object) -> None:
        raise TrainingCancelled

    for name in ("watch_parent", "watch_sigterm"):
        monkeypatch.setattr(trainer, name, lambda: None)
    monkeypatch.setattr(trainer, "run_job", cancelled)
    assert trainer.main(tmp_path) == 3
    assert JobFolder(tmp_path).state["state"] == "cancelled"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"device": "cuda"}, "asks for a GPU (cuda), and torch sees none"),
        ({"base": "nobody/nothing"}, "nobody/nothing is not in the local cache of the hub"),
    ],
)
@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_what_cannot_be_done_is_refused_with_the_reason(changes, words, parts, tmp_path):
    folder = prism(tmp_path, parts)
    folder.write_request({**folder.job, **changes})
    kept = signal.getsignal(signal.SIGTERM)
    try:
        assert trainer.main(folder.path) == 2
    finally:
        signal.signal(signal.SIGTERM, kept)
    assert folder.state["state"] == "refused" and words in folder.state["error"]
    assert not folder.metrics.exists()


def test_a_hub_id_comes_from_the_local_cache_alone(parts, tmp_path, monkeypatch):
    cache = tmp_path / "hub" / "models--birds--owl"
    snapshot = cache / "snapshots" / "0123456789abcdef0123456789abcdef01234567"
    for folder in (snapshot.parent, cache / "refs"):
        folder.mkdir(parents=True)
    snapshot.symlink_to(parts[0])
    (cache / "refs" / "main").write_text(snapshot.name)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    assert (find_base("birds/owl", tmp_path) / "config.json").exists()


def test_a_set_that_was_changed_after_its_export_is_refused(tmp_path):
    rows = write_set(tmp_path / "set")
    with (rows / "train.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(BadInput, match="sha256"):
        read_training_set(rows)
    manifest = json.loads((rows / "manifest.json").read_text())
    (rows / "manifest.json").write_text(json.dumps({**manifest, "files": []}))
    (rows / "train.jsonl").write_text('{"query": "a", "document": "b", "loss_type": "point-wise"}\n{"query": 1}\n')
    with pytest.raises(BadInput, match=r"train\.jsonl, line 2: .*'document'"):
        read_training_set(rows)


PROGRAM = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from training.recipes.job_folder import JobFolder
from training.trainers.callback import JobCallback
from training.trainers.contrastive import InBatchLoss
from training.trainers.processes import group_position, is_first_process, share_training
from training.trainers.training import open_recipe, prepare_task
folder, size, fails = JobFolder(Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
def keep(self, args, state, control, **rest):
    if int(state.global_step) == 0 and is_first_process():
        grads = {name: value.grad for name, value in rest["model"].named_parameters() if value.grad is not None}
        torch.save({"grads": grads, "budget": self.progress.token_budget}, folder.path / "grads.pt")
JobCallback.on_pre_optimizer_step = keep
passes = []
def fail_once(kind):
    # In the second pass of a kind in the last process: the first has left a gradient.
    passes.append(kind)
    if group_position()[0] == size - 1 and fails == kind and passes.count(kind) == 2:
        raise torch.OutOfMemoryError("CUDA out of memory (raised by the test)")
embed = InBatchLoss.embed_minibatch
def embed_minibatch(self, sentence_feature, begin, end, with_grad, *rest, **more):
    fail_once("replay" if with_grad else "embed")
    return embed(self, sentence_feature, begin, end, with_grad, *rest, **more)
InBatchLoss.embed_minibatch = embed_minibatch
def sample(prompts, trainer):
    # The same answers to a document in any number of processes: two that score it, and one that is malformed.
    rows = [max(place, -1 - place) for place in map(int, prompts)]
    queries.update(recipe.rows[row].query_id for row in rows)
    # Before the gradients are shared: the leading process ends without waiting for what another writes afterwards.
    (folder.path / f"queries-{group_position()[0]}.txt").write_text("\\n".join(sorted(queries)))
    texts = [f"<think>{row} {at % 3}</think><answer>{(row * 3 + at % 3 * 5) % 11}</answer>" if at % 3 < 2 else "x"
             for at, row in enumerate(rows)]
    answers = [recipe.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    return {"prompt_ids": [recipe.encoded[row].ids for row in rows], "completion_ids": answers, "logprobs": None}
task = prepare_task(folder, folder.job)
with share_training(folder.path, size, "cpu", program=["-c", sys.argv[4], *sys.argv[1:]]):
    recipe, queries = open_recipe(task), set()
    if task.recipe == "erank-grpo":
        recipe.sample = sample
    elif task.recipe != "rtriever":
        forward = recipe.forward
        def forward_once(numbers):
            fail_once("forward")
            return forward(numbers)
        recipe.forward = forward_once
        for module in recipe.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
    recipe.train(folder, lambda: False)
"""


def train_first_step(
    folder: Path, name: str, rows: Path, size: int, fails: str = "no", base: str = "tiny:qwen3", **options: Any
) -> tuple[JobFolder, dict[str, Any]]:
    """Train in so many processes, each of which starts the program once more; its job, and its first gradient."""
    job = ask(folder / f"{size}-{fails}", name, rows, base, clip=0.0, processes=size, **options)
    command = [sys.executable, "-c", PROGRAM, str(job.path), str(size), fails, PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return job, torch.load(job.path / "grads.pt", weights_only=True)


def check_gradients(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """The same in one process as in two, and not nothing."""
    assert max(float(value.abs().max()) for value in ours.values()) > 1e-4
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert torch.allclose(value, theirs[name], atol=1e-5), name


SHARED: dict[str, dict[str, Any]] = {
    "prism": {"lora_rank": 4},
    "prism-extend": {"lora_rank": 4, "teacher_prompt": "qwen3-reranker"},
    "cross-encoder": {"max_length": 32, "token_budget": 64, "batch": 14, "base": "tiny:encoder"},
    "ablation": {"lora_rank": 4, "loss": "point+list+rank", "token_budget": 6000},
    "rtriever": {"batch": 8, "token_budget": 64, "max_length": 32},
}


@pytest.mark.weekly
@pytest.mark.parametrize("name", SHARED)
def test_two_processes_give_the_gradient_of_one_also_when_one_runs_out_of_memory(name, tmp_path):
    if name == "rtriever":
        rows = write(tmp_path / "set", [row(number) for number in range(8)])
    else:
        rows = write_set(tmp_path / "set", documents=16 if name == "ablation" else 6)
    cases = [(2, "embed"), (1, "replay"), (2, "replay")] if name == "rtriever" else [(2, "forward")]
    options = {"token_budget": 700, "max_length": 320, "batch": 7, "epochs": 1, "max_steps": 1, **SHARED[name]}
    job, alone = train_first_step(tmp_path, name, rows, 1, **options)
    (line,) = (line for line in job.read_metrics() if "loss" in line)
    for size, fails in [(2, "no"), *cases]:
        job, shared = train_first_step(tmp_path, name, rows, size, fails, **options)
        assert (shared["budget"] < alone["budget"]) == (fails != "no")
        check_gradients(alone["grads"], shared["grads"])
        (other,) = (line for line in job.read_metrics() if "loss" in line)
        for key in {"loss", "parts"} & set(line):
            assert other[key] == pytest.approx(line[key], rel=1e-4)


@pytest.mark.weekly
def test_rollouts_of_whole_queries_in_two_processes_give_the_gradient_of_one(tmp_path):
    """Four queries of three documents: each process has all rollouts of two of them."""
    data = export_scores(tmp_path / "data", queries=4, dev=0)
    options = {"batch": 12, "mini_batch": 12, "group": 3, "epochs": 1, "max_response": 24, "rollouts_every": 1}
    (one, alone), (two, shared) = (train_first_step(tmp_path, "erank-grpo", data, size, **options) for size in (1, 2))
    check_gradients(alone["grads"], shared["grads"])
    queries, first, second = (
        (job.path / f"queries-{rank}.txt").read_text().split() for job, rank in ((one, 0), (two, 0), (two, 1))
    )
    assert len(queries) == 4 and sorted([*first, *second]) == queries
    kept = [{(line["query_id"], line["doc_id"], line["text"]): (line["reward"], line["advantage"], line["rank"])
             for line in read_lines(job.path / "rollouts.jsonl")} for job in (one, two)]  # fmt: skip
    assert len(kept[0]) == 36 and kept[0] == kept[1]
    lines = [next(line for line in job.read_metrics() if "reward_mean" in line) for job in (one, two)]
    assert lines[0]["reward_mean"] == pytest.approx(lines[1]["reward_mean"])


def test_a_group_that_cannot_be_joined_leaves_no_process_watcher_or_variable_behind(tmp_path, monkeypatch):
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
