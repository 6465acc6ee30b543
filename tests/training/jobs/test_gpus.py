"""GPUs of a job: of the worker's own visible ones, by their names, all or none, and free when it is over."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from corpus.errors import BadInput
from jobs import leases, system
from training.jobs import gpus, lifecycle, supervisor
from training.models import Job
from training.recipes.job_folder import JobFolder


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
