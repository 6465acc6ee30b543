"""Jobs of training beside their pages: a command cancels and resumes them, or is stopped while it waits; their GPUs."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corpus.errors import BadInput
from corpus.models import Collection
from jobs import leases, system
from tests.called import call
from tests.instances import PATIENCE, ROOT
from tests.training_sets import write_set
from training.jobs import gpus, lifecycle, supervisor
from training.jobs.worker_pool import OwnWorker
from training.models import Job
from training.recipes.job_folder import JobFolder


def begin(collection: Collection | None = None, **changes: Any) -> Job:
    job = lifecycle.begin_job(kind="train", options={"recipe": "prism"}, collection=collection)
    Job.objects.filter(pk=job.pk).update(**changes)
    return job


def control(*arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call("training", *arguments, "--json").out)
    return found


def refused(*arguments: Any) -> str:
    done = call("training", *arguments)
    assert done.code == 2
    return done.err


@pytest.mark.django_db
def test_alice_cancels_and_resumes_a_training_by_command_and_what_is_over_is_refused_in_one_line(birds):
    older, newer = begin(birds), begin(birds)
    said = {"job": newer.number, "kind": "train", "state": "cancelled", "cancel_asked": False}
    assert control("birds", "cancel") == said
    assert control("birds", "cancel")["job"] == older.number
    assert refused("birds", "cancel") == "birds has no job to cancel\n"
    assert control("birds", "resume", "--job", older.number)["state"] == "queued"
    running = begin(birds, state="running")
    assert control("birds", "cancel") == said | {"job": running.number, "state": "running", "cancel_asked": True}
    done, shared = begin(birds, state="finished"), begin()
    assert (
        refused("birds", "cancel", "--job", done.number)
        == f"Job {done.number} is finished: there is nothing to cancel\n"
    )
    assert "job 9" in refused("birds", "cancel", "--job", 9)
    assert '"nests"' in refused("nests", "cancel")
    assert control("_shared", "cancel")["job"] == shared.number == 1


@pytest.mark.django_db
def test_a_command_that_is_stopped_while_it_waits_says_what_goes_on_and_how_to_end_it(tmp_path, monkeypatch):
    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(OwnWorker, "ensure", lambda self, device: None)
    monkeypatch.setattr("training.jobs.worker_pool.time.sleep", stop)
    rows = write_set(tmp_path / "set", queries=5)
    done = call("train", "prism", "--data", rows, "--base", "tiny:qwen3", "--out", tmp_path / "out", "--wait")
    job = Job.objects.get()
    assert done.code == 130 and job.state == "queued"
    assert f"to end it: manage.py training _shared cancel --job {job.number}" in done.err


def test_sigterm_ends_a_command_as_ctrl_c_does():
    program = """
import django, time
django.setup()
from corpus.commands import QuorumCommand
class Waiting(QuorumCommand):
    def run(self, **options):
        try:
            print("waits", flush=True)
            time.sleep(600)
        except KeyboardInterrupt:
            print("goes on elsewhere", flush=True)
            raise
Waiting().handle(json=False)
"""
    child = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "waits\n"
    child.send_signal(signal.SIGTERM)
    assert child.communicate(timeout=PATIENCE)[0] == "goes on elsewhere\n" and child.returncode == 143


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any) -> None:
    """A worker that was given four of a machine's eight GPUs; what torch counts is said by the test."""
    settings.VAR = tmp_path
    driver = tmp_path / "driver"
    driver.touch()
    monkeypatch.setattr(system, "NVIDIA_DRIVER", driver)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,GPU-8f2")
    counted = subprocess.CompletedProcess([], 0, stdout="4\n", stderr="")
    monkeypatch.setattr(gpus.subprocess, "run", lambda *_args, **_rest: counted)
    gpus.visible_gpus.cache_clear()
    yield
    gpus.visible_gpus.cache_clear()


@pytest.mark.usefixtures("four")
def test_a_job_gets_gpus_by_the_workers_own_names_one_for_each_process_or_is_refused():
    assert gpus.visible_gpus() == ("4", "5", "6", "GPU-8f2")
    with gpus.claim_gpus(2) as one, gpus.claim_gpus(1) as two:
        assert one == ["4", "5"] and two == ["6"]
        with gpus.claim_gpus(2) as none, gpus.claim_gpus(1) as last:
            assert none == [] and last == ["GPU-8f2"]  # all or none: what it held was free at once
    with gpus.claim_gpus(4) as every:
        assert every == ["4", "5", "6", "GPU-8f2"]
    job = Job(device="cuda", kind="train", options={"recipe": "prism", "options": {"processes": 5}})
    assert supervisor.count_gpus(job) == 5
    assert supervisor.count_gpus(Job(device="cuda", kind="rerank")) == 1
    assert supervisor.count_gpus(Job(device="cpu", kind="train", options=job.options)) == 0
    nothing: Any = None
    with pytest.raises(BadInput, match=r"5 GPUs .* 4"):
        supervisor._run_on_device(nothing, job, nothing, lambda: False)


@pytest.mark.django_db
@pytest.mark.usefixtures("four")
def test_a_job_waits_until_others_have_ended_and_goes_back_when_its_worker_ends(tmp_path):
    options = {"recipe": "prism", "options": {"processes": 2}}
    lifecycle.begin_job(kind="train", options=options, collection=None, device="cuda")
    job = leases.claim(Job, device="cuda")
    assert job is not None
    asked: list[str] = []

    def ends() -> bool:
        asked.append(Job.objects.get(pk=job.pk).phase)
        return True

    with gpus.claim_gpus(3), leases.Lease(job, lambda: False) as lease:
        assert supervisor._run_on_device(lease, job, JobFolder(tmp_path), ends) is None
    job.refresh_from_db()
    assert len(asked) == 1 and "GPUs" in asked[0] and job.state == Job.State.QUEUED
