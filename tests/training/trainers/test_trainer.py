"""The trainer as a process: killed and resumed, cancelled, refused (issue 3, checks 4 and 5)."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402

from corpus.errors import BadInput  # noqa: E402
from tests.instances import PATIENCE, ROOT, until  # noqa: E402
from tests.speed import slowness  # noqa: E402
from tests.stages import first_slow  # noqa: E402
from tests.training.trainers.scored import export_scores  # noqa: E402
from tests.training_sets import ask, write_set  # noqa: E402
from training import trainer  # noqa: E402
from training.published.tiny_bases import tiny_base  # noqa: E402
from training.recipes.data import read_training_set  # noqa: E402
from training.recipes.job_folder import JobFolder, TrainingCancelled, read_lines  # noqa: E402

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


@pytest.mark.weekly
def test_killed_twice_it_has_the_losses_and_measures_of_an_uninterrupted_run(
    parts: tuple[Path, Path], tmp_path: Path
) -> None:
    whole, killed = prism(tmp_path / "whole", parts), prism(tmp_path / "killed", parts)
    assert start(whole).wait(PATIENCE) == 0, whole.log.read_text()
    for step in (6, 17):
        child = start(killed)
        until(lambda step=step: reached(killed, step))
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert not reached(killed, 40)
    assert start(killed).wait(PATIENCE) == 0, killed.log.read_text()
    assert losses(killed) == losses(whole) and len(losses(whole)) == 40
    assert killed.state["result"]["metrics"] == whole.state["result"]["metrics"]
    assert [line["step"] for line in killed.read_metrics() if "dev" in line] == [20, 40]


@pytest.mark.slow
def test_cancelled_it_saves_what_it_has_within_ten_seconds(parts: tuple[Path, Path], tmp_path: Path) -> None:
    folder = prism(tmp_path, parts, **{**LONG, "processes": 1}, checkpoint_every=500)
    child = start(folder)
    until(lambda: reached(folder, 5))
    began = time.monotonic()
    child.terminate()
    assert child.wait(PATIENCE) == 3 and time.monotonic() - began < 10 * slowness()
    (step,) = folder.checkpoint_steps()
    assert folder.state["state"] == "cancelled" and losses(folder)[-1][0] == step >= 5
    weights = load_file(folder.checkpoint(step) / "adapter_model.safetensors")
    assert any("lora_B" in name and bool(value.abs().max() > 0) for name, value in weights.items())
    assert not (tmp_path / "out").exists()


OTHERS: dict[str, dict[str, Any]] = {
    "cross-encoder": {"batch": 4},
    "ablation": {"batch": 2, "lora_rank": 4, "loss": "point+list+rank", "negatives": 3},
    "prism-extend": {"batch": 4, "lora_rank": 4},
    "erank-grpo": {"batch": 6, "mini_batch": 6, "group": 2, "max_response": 8, "epochs": 8, "rollouts_every": 1},
}


@pytest.mark.parametrize("recipe", first_slow(OTHERS))
def test_other_recipes_resume_with_the_same_losses(recipe: str, parts: tuple[Path, Path], tmp_path: Path) -> None:
    options = {"max_steps": 16, "checkpoint_every": 3, "evaluate_every": 16, **OTHERS[recipe]}
    base, rows = "tiny:encoder" if recipe == "cross-encoder" else str(parts[0]), parts[1]
    if recipe == "erank-grpo":
        base, rows = "tiny:qwen3", export_scores(tmp_path / "scores", queries=4, dev=2)
    jobs = [ask(tmp_path / name, recipe, rows, base, **options) for name in ("whole", "killed")]
    whole, killed = jobs
    assert start(whole).wait(PATIENCE) == 0, whole.log.read_text()
    child = start(killed)
    until(lambda: reached(killed, 7))
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not reached(killed, 16)
    assert start(killed).wait(PATIENCE) == 0, killed.log.read_text()
    found, wanted = losses(killed), losses(whole)
    assert len(wanted) == 16 and [step for step, _ in found] == [step for step, _ in wanted]
    assert [loss for _, loss in found] == pytest.approx([loss for _, loss in wanted], abs=1e-6)
    if recipe == "erank-grpo":
        texts = [read_lines(folder.path / "rollouts.jsonl") for folder in jobs]
        assert [(one["step"], one["text"]) for one in texts[0]] == [(one["step"], one["text"]) for one in texts[1]]
        line = next(line for line in whole.read_metrics() if "reward_mean" in line)
        assert {"kl", "response_tokens", "malformed", "clip_share", "reward_by_kind"} <= set(line)


@pytest.mark.weekly
def test_two_processes_train_measure_and_publish_as_one_does(parts: tuple[Path, Path], tmp_path: Path) -> None:
    folders = []
    for processes in (1, 2):
        options = {"max_steps": 6, "evaluate_every": 3, "checkpoint_every": 2, "processes": processes}
        folders.append(prism(tmp_path / str(processes), parts, **options))
        assert start(folders[-1]).wait(PATIENCE) == 0, folders[-1].log.read_text()
    one, two = folders
    assert [step for step, _ in losses(two)] == list(range(1, 7))
    assert [loss for _, loss in losses(two)] == pytest.approx([loss for _, loss in losses(one)], rel=1e-5)
    dev = [[line["dev"]["label_pearson"] for line in folder.read_metrics() if "dev" in line] for folder in folders]
    assert len(dev[0]) == 2 and dev[0] == pytest.approx(dev[1], abs=1e-4)
    assert two.state["state"] == "finished" and (tmp_path / "2" / "out" / "reranker.json").exists()


@pytest.mark.weekly
def test_two_processes_are_cancelled_together_and_go_on(parts: tuple[Path, Path], tmp_path: Path) -> None:
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
def test_a_process_that_dies_ends_the_training_that_it_shared(parts: tuple[Path, Path], tmp_path: Path) -> None:
    folder = prism(tmp_path, parts, **LONG, checkpoint_every=2)
    child = start(folder)
    until(lambda: reached(folder, 3))
    (other,) = psutil.Process(child.pid).children()
    other.kill()
    assert child.wait(PATIENCE) == 1
    assert folder.checkpoint_steps() and not (tmp_path / "out").exists()


def test_what_is_cancelled_says_so_in_its_exit_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
def test_what_cannot_be_done_is_refused_with_the_reason(
    changes: dict[str, Any], words: str, parts: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = prism(tmp_path, parts)
    folder.write_request({**folder.job, **changes})
    kept = signal.getsignal(signal.SIGTERM)
    try:
        assert trainer.main(folder.path) == 2
    finally:
        signal.signal(signal.SIGTERM, kept)
    assert folder.state["state"] == "refused" and words in folder.state["error"]
    assert not folder.metrics.exists()


def test_a_hub_id_comes_from_the_local_cache_alone(
    parts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from training.published.base import find_base

    cache = tmp_path / "hub" / "models--birds--owl"
    snapshot = cache / "snapshots" / "0123456789abcdef0123456789abcdef01234567"
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to(parts[0])
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(snapshot.name)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    assert (find_base("birds/owl", tmp_path) / "config.json").exists()


def test_a_set_that_was_changed_after_its_export_is_refused(tmp_path: Path) -> None:
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
