"""Training jobs on the real queue: taken up, cancelled, killed, refused (checks 4 and 5 through the worker)."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

pytest.importorskip("torch")

from safetensors.torch import load_file

from corpus.errors import BadInput
from jobs import leases
from jobs.processes import spawn_child, stop_children
from jobs.workers import live_workers
from tests.instances import PATIENCE, ROOT, until
from tests.speed import slowness
from tests.training_sets import write_set
from training.jobs import lifecycle, pages, worker_pool
from training.models import Job, Model
from training.recipes.job_folder import JobFolder

pytestmark = pytest.mark.django_db(transaction=True)
FEW = {"preset": "tiny", "max_steps": 30, "lora_rank": 4, "checkpoint_every": 5, "evaluate_every": 30}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_set(tmp_path / "set")


@pytest.fixture
def workers(instance: dict[str, str]) -> Iterator[list[subprocess.Popen[str]]]:
    """Workers of the queue that a test starts; all are gone after it."""
    started: list[subprocess.Popen[str]] = []
    yield started
    stop_children(started, patience=60)


def start_worker(workers: list[subprocess.Popen[str]], instance: dict[str, str]) -> subprocess.Popen[str]:
    command = worker_pool.worker_command(1, f"test-{len(workers)}")
    workers.append(spawn_child(command, {**instance, "OMP_NUM_THREADS": "1"}, cwd=ROOT, stdout=subprocess.DEVNULL))
    return workers[-1]


def begin(rows: Path, out: Path, device: str = "cpu", **given: Any) -> Job:
    options = {"recipe": "prism", "base": "tiny:qwen3", "option_values": {**FEW, **given}}
    return lifecycle.begin_training(data=rows, out=out, device=device, **options)


def reaches(job: Job, *states: str) -> Job:
    def there() -> bool:
        job.refresh_from_db()
        return job.state in states

    until(there, f"{states} ({job.phase}, {job.error})")
    return job


def losses(job: Job) -> list[tuple[int, float]]:
    return [(line["step"], line["loss"]) for line in JobFolder(Path(job.folder)).read_metrics() if "loss" in line]


def does_step(job: Job, step: int) -> None:
    until(lambda: bool(losses(job)) and losses(job)[-1][0] >= step, f"step {step}")


def trainer_of(job: Job) -> int:
    command = ["pgrep", "-f", f"training.trainer {job.folder}"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0])


@pytest.mark.slow
def test_a_job_whose_worker_ends_goes_on_and_a_cancelled_one_ends_within_ten_seconds_and_can_go_on(
    rows: Path, tmp_path: Path, instance: dict[str, str], workers: list[subprocess.Popen[str]]
) -> None:
    job = begin(rows, tmp_path / "model", max_steps=3000, epochs=2000, checkpoint_every=1000, evaluate_every=3000)
    first = start_worker(workers, instance)
    does_step(job, 5)
    first.terminate()
    reaches(job, Job.State.QUEUED)
    first.wait(PATIENCE)
    (before,) = JobFolder(Path(job.folder)).checkpoint_steps()
    assert job.attempts == 0, "a worker that is asked to end gives its job back with a checkpoint"
    start_worker(workers, instance)
    does_step(job, before + 5)
    began = time.monotonic()
    assert leases.ask_to_cancel(job)
    reaches(job, Job.State.CANCELLED)
    assert time.monotonic() - began < 10 * slowness()
    folder = JobFolder(Path(job.folder))
    step = folder.checkpoint_steps()[-1]
    weights = load_file(folder.checkpoint(step) / "adapter_model.safetensors")
    assert losses(job)[-1][0] == step and any(bool(weights[name].any()) for name in weights if "lora_B" in name)
    assert not Model.objects.exists() and not leases.ask_to_cancel(job)

    options = {**folder.job["options"], "max_steps": step + 3, "evaluate_every": step + 3}
    folder.write_request({**folder.job, "options": options})
    assert lifecycle.resume_job(job)
    worker_pool.notify_workers()
    reaches(job, Job.State.FINISHED)
    assert losses(job)[-1][0] == step + 3
    model = Model.objects.get(job=job)
    assert model.words == "tiny model, CPU" and (Path(model.folder) / "reranker.json").exists()


@pytest.mark.weekly
def test_killed_trainers_and_workers_cost_no_step_and_change_no_loss(rows, tmp_path, instance, workers) -> None:
    longer = {"max_steps": 120, "epochs": 20, "evaluate_every": 120}
    whole = begin(rows, tmp_path / "whole", **longer)
    worker = start_worker(workers, instance)
    reaches(whole, Job.State.FINISHED)
    killed = begin(rows, tmp_path / "killed", **longer)
    worker_pool.notify_workers()
    does_step(killed, 12)
    os.kill(trainer_of(killed), signal.SIGKILL)
    does_step(killed, 40)
    assert not killed.is_over
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    Job.objects.filter(pk=killed.pk).update(lease_until=timezone.now())  # the half minute that a lease lasts
    start_worker(workers, instance)
    reaches(killed, Job.State.FINISHED)
    assert losses(killed) == losses(whole) and len(losses(whole)) == 120
    assert killed.attempts >= 3
    assert killed.result["metrics"] == whole.result["metrics"]


@pytest.mark.slow  # a worker that still starts takes half a minute to end
def test_a_job_for_a_gpu_waits_for_one_and_says_so(rows, tmp_path, instance, workers) -> None:
    job = begin(rows, tmp_path / "model", device="cuda")
    assert "No trainer" in pages.explain_queue_wait(job)
    start_worker(workers, instance)
    until(lambda: bool(live_workers(worker_pool.QUEUE)))
    if "cuda" in live_workers(worker_pool.QUEUE)[0].devices:
        pytest.skip("this machine has a GPU")
    assert leases.claim(Job, device="cpu") is None
    assert "with a GPU" in pages.explain_queue_wait(job)
    assert leases.ask_to_cancel(job) and reaches(job, Job.State.CANCELLED).attempts == 0


def test_what_is_known_to_be_wrong_is_refused_before_it_waits(rows: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for given, words in (
        ({"out": tmp_path / "full"}, "is not empty"),
        ({"out": tmp_path / "m", "learning_rate": 0.0}, "learning_rate and epochs must be above 0"),
        ({"out": tmp_path / "m", "device": "tpu"}, "Device must be cpu or cuda"),
    ):
        with pytest.raises(BadInput, match=words):
            begin(rows, **given)
    assert not Job.objects.exists()


@pytest.mark.slow
def test_the_command_waits_with_a_worker_of_its_own_and_prints_the_contracts_document(rows, tmp_path, manage) -> None:
    few = ["--preset", "tiny", "--max-steps", 4, "--lora-rank", 4, "--wait", "--json"]
    done = manage("train", "prism", "--data", rows, "--base", "tiny:qwen3", "--out", tmp_path / "model", *few)
    assert set(done.json) == {"job", "state", "steps", "loss_first", "loss_last", "metrics", "out"}
    assert done.json["state"] == "finished" and done.json["steps"] == 4
    assert "too few" in done.json["metrics"]["gain"]["words"] and done.json["metrics"]["rankings"] == {}
    assert json.loads((tmp_path / "model" / "reranker.json").read_text())["words"] == "tiny model, CPU"
    assert not live_workers(worker_pool.QUEUE)

    bad = manage("train", "prism", "--data", rows, "--base", "tiny:encoder", "--out", tmp_path / "b", *few, check=False)
    assert bad.code == 2 and bad.out == "" and "cannot train this" in bad.err
    assert manage("train", "prism", "--data", tmp_path, "--base", "x", "--out", tmp_path / "c", check=False).code == 2
