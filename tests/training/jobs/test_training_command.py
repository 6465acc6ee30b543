"""`training NAME cancel|resume`, and what ends a command that waits for a training."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from corpus.models import Collection
from tests.called import call
from tests.instances import PATIENCE, ROOT
from tests.training_sets import write_set
from training.jobs import lifecycle
from training.jobs.worker_pool import OwnWorker
from training.models import Job


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
