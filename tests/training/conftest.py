"""A collection and its admin, for the pages of training, and a worker of the queue."""

import subprocess
from collections.abc import Iterator

import pytest
from django.test import Client

from annotation.models import Role
from corpus.models import Collection
from jobs.processes import spawn_child, stop_children
from jobs.workers import has_workers
from tests.factories import client_of, make_collection, make_member
from tests.instances import ROOT, until
from training.jobs import worker_pool


@pytest.fixture
def birds(db: None) -> Collection:
    return make_collection("birds", lab=True)


@pytest.fixture
def alice(birds: Collection) -> Client:
    return client_of(make_member(birds, "alice", Role.ADMIN))


@pytest.fixture
def worker(instance: dict[str, str]) -> Iterator[None]:
    """A real worker of the queue."""
    environment = {**instance, "OMP_NUM_THREADS": "1"}
    child: subprocess.Popen[str] = spawn_child(
        worker_pool.worker_command(1), environment, cwd=ROOT, stdout=subprocess.DEVNULL
    )
    until(lambda: has_workers(worker_pool.QUEUE), "a worker of the queue")
    yield
    stop_children([child], patience=15)
