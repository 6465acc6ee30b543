"""Machines that share PostgreSQL, Redis and an S3 bucket, and nothing else (issue 17, check 5)."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from config.env import ROOT
from jobs.processes import spawn_child, stop_children
from judges.campaigns import configurations, lifecycle
from judges.campaigns.selectors import campaign_status
from judges.models import Attempt
from judges.workers import worker_pool as judge_pool
from store import files
from store.models import StoredFile
from tests.engine_parts import FAST, collection_of, make_panel, spent_by, state_of
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.instances import until
from tests.machines import on_machine, serve_s3
from tests.repeated import repeated_beyond_flight
from tests.stages import first_slow
from tests.standing import end_standing_worker
from tests.training_sets import write_set

pytestmark = pytest.mark.django_db(transaction=True)

Start = Callable[[str, list[str]], "subprocess.Popen[str]"]


class Machines:
    """The test's own process is machine A; processes of others are started with their VAR in the environment."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.environment, self.folder = environment, folder
        self.started: list[subprocess.Popen[str]] = []

    def start(self, name: str, command: list[str]) -> "subprocess.Popen[str]":
        variables = on_machine(self.environment, self.folder / name)
        child = spawn_child(command, variables, cwd=ROOT, stdout=subprocess.DEVNULL)
        self.started.append(child)
        return child


def kill_group(child: "subprocess.Popen[str]") -> None:
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


@pytest.fixture
def machines(
    instance: dict[str, str], settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Machines]:
    end_standing_worker()  # it belongs to a machine without a store
    with serve_s3() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        settings.STORE, settings.VAR = variables["QUORUM_STORE"], tmp_path / "a"
        settings.VAR.mkdir()
        both = {**instance, **variables, **FAST, "SECRET_KEY": settings.SECRET_KEY, "OMP_NUM_THREADS": "1"}
        found = Machines(both, tmp_path)
        yield found
        stop_children(found.started, patience=60)


@pytest.mark.weekly
def test_a_training_killed_on_b_goes_on_on_c_and_its_model_ranks_on_d(machines: Machines) -> None:
    pytest.importorskip("torch")
    from training.jobs import lifecycle as jobs
    from training.jobs import pages, worker_pool
    from training.models import Job, Model
    from training.recipes.job_folder import JobFolder

    def reaches(job: Job, state: str) -> None:
        until(lambda: Job.objects.filter(pk=job.pk, state__in=[state, "failed", "refused"]).exists(), state)
        job.refresh_from_db()
        assert job.state == state, job.error

    birds = make_collection("birds")
    for number in range(3):
        query = make_query(birds, f"what is a key {number}")
        make_pair(birds, query, make_document(birds, f"The key {number} is used."))
    rows = write_set(django_settings.VAR / "exports" / "birds" / "set")
    files.publish(rows)
    few = {"preset": "tiny", "lora_rank": 4, "max_steps": 60, "epochs": 20, "checkpoint_every": 5, "evaluate_every": 60}
    about = {"recipe": "prism", "base": "tiny:qwen3", "device": "cpu", "option_values": few}
    job = jobs.begin_training(data=rows, out=None, collection=birds, **about)
    first = machines.start("b", worker_pool.worker_command(1, "b"))
    until(lambda: StoredFile.objects.filter(name__endswith="trainer.json").exists(), "a checkpoint in the store")
    kill_group(first)
    assert not Job.objects.get(pk=job.pk).is_over
    Job.objects.filter(pk=job.pk).update(lease_until=timezone.now())  # the half minute that a lease lasts
    machines.start("c", worker_pool.worker_command(1, "c"))
    reaches(job, "finished")
    on_c = JobFolder(machines.folder / "c" / "jobs" / "birds" / Path(job.folder).name)
    steps = [line["step"] for line in on_c.read_metrics() if "loss" in line]
    assert steps == list(range(1, 61)), "what B did is not done again"
    shown = pages.live_job(job)  # on A
    assert shown["latest"]["step"] == 60 and "log.txt" in shown["files"]
    stop_children(machines.started, patience=60)

    model = Model.objects.get(job=job)
    assert Path(model.folder).is_relative_to(django_settings.VAR) and not Path(model.folder).exists()
    machines.start("d", worker_pool.worker_command(1, "d"))
    ranked = jobs.use_model(model, "rerank")
    reaches(ranked, "finished")
    assert files.fetch(Path(ranked.folder) / "tuned.run").read_text().count("\n") == 9
    assert (files.fetch(Path(model.folder)) / "config.json").exists()


@pytest.mark.parametrize("budget", first_slow([100.0, None]), ids=["with a budget", "without any limit"])
def test_a_judge_worker_killed_with_its_machine_costs_no_call_twice(machines, model_server, budget) -> None:
    """Its pending answers are gone with its disk: what was in flight is asked again, and counted as possibly paid."""
    collection = collection_of(24)
    make_panel(model_server, debate=("yes+a", "yes+b"), votes=tuple(f"yes+v{place}" for place in range(5)))
    model_server.script({"*": {"verdict": "yes", "latency": 0.3}})
    machines.environment["QUORUM_CALLS_IN_FLIGHT"] = "8"
    on_b = machines.start("b", judge_pool.worker_command(2, "b"))
    wanted = configurations.build_configuration()
    campaign = lifecycle.start_campaign(collection=collection, configuration=wanted, budget=budget).campaign
    assert campaign is not None
    until(lambda: len(model_server.requests()) >= 40)
    killed = time.time()
    kill_group(on_b)
    time.sleep(1.0)  # what it sent may still be on its way
    dead = time.time()
    assert 0 < Attempt.objects.count() < 24 * 7
    machines.start("c", judge_pool.worker_command(1, "c"))
    until(lambda: state_of(campaign) == "finished")
    found = campaign_status(collection, campaign)
    assert found["labelled"] == 24
    repeated, flying = repeated_beyond_flight(model_server.requests(), killed, dead)
    assert repeated == 0 and flying
    assert Attempt.objects.filter(counts=True).count() == 24 * 7
    assert found["calls_possible"] >= 1 and found["cost_possible"] > 0
    assert spent_by(campaign) == pytest.approx(found["cost"] + found["cost_possible"])
