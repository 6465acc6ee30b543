"""Long work of real workers reaches the inbox: a provider that dies, a large export, a refused import, a training."""

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from annotation.exports import services as exports
from annotation.models import Role
from corpus.models import Collection, Label
from jobs import leases
from tests.engine_parts import _standing_worker as _standing_worker
from tests.engine_parts import begin, collection_of, make_panel
from tests.engine_parts import worker as worker  # a fixture
from tests.factories import client_of, make_member
from tests.instances import until
from tests.modelserver.fixtures import KEY, KEY_ENV, LocalModels, start
from tests.reading import flat
from training.models import Job

pytestmark = pytest.mark.django_db(transaction=True)
WITHIN_S = 15.0
# How long a page waits for its next look, at most: the Overview while a campaign runs, and the count of every page.
OVERVIEW_S, COUNT_S = 5.0, 10.0


def count(client: Client) -> int:
    return int(re.search(r'data-count="(\d+)"', client.get("/c/books/inbox/").text)[1])


@pytest.fixture
def serve(tmp_path, monkeypatch) -> Iterator[Callable[..., tuple[subprocess.Popen[str], LocalModels]]]:
    """Starts a model server of this test alone, which can be killed."""
    monkeypatch.setenv(KEY_ENV, KEY)
    monkeypatch.setenv("QUORUM_LOOPBACK_ONLY", "1")
    processes: list[subprocess.Popen[str]] = []

    def begin_serving(*options: str) -> tuple[subprocess.Popen[str], LocalModels]:
        process, models = start(tmp_path / "requests.jsonl", "--latency", "0.3", *options)
        processes.append(process)
        return process, models

    yield begin_serving
    for process in processes:
        with process:
            process.terminate()


@pytest.mark.weekly
def test_a_provider_that_dies_is_in_the_inbox_and_goes_once_it_answers_again(worker, serve) -> None:
    process, models = serve()
    books = collection_of(400)
    Collection.objects.update(audit=0.0)
    client = client_of(make_member(books, "charlie", Role.ADMIN))
    make_panel(models, max_concurrency=8)
    begin(books)
    until(Label.objects.exists)
    assert count(client) == 0
    process.kill()
    process.wait()
    appeared = until(lambda: count(client) == 1)
    page = flat(client.get("/c/books/").text)
    assert f"(127.0.0.1:{models.port}) has not answered since" in page and "ClientConnectorError" not in page
    time.sleep(33)  # so long that the waits between tries would have grown to half a minute
    assert count(client) == 1
    serve("--port", str(models.port))
    gone = until(lambda: count(client) == 0)
    print(f"\nin the inbox after {appeared:.1f} s, gone {gone:.1f} s after it answers again")
    assert appeared + COUNT_S <= WITHIN_S and gone + OVERVIEW_S <= WITHIN_S


def test_a_large_export_that_a_worker_ends_and_an_import_that_it_refuses_are_told(worker, monkeypatch) -> None:
    monkeypatch.setattr(exports, "MAX_ROWS_IN_REQUEST", 1)
    books = collection_of(3)
    for pair in books.pair_set.all():
        Label.objects.create(pair=pair, grade=1, origin="people")
    client = client_of(make_member(books, "charlie", Role.ADMIN))
    since = timezone.now().isoformat()
    assert client.post("/c/books/exports/make/", {"format": "csv"}).status_code == 302
    client.post("/c/books/import/", {"files": SimpleUploadedFile("pairs.jsonl", b'{"query_id": 1\n')})
    until(lambda: count(client) == 2)
    page = client.get("/c/books/inbox/", {"since": since}).text
    assert "Export 1 is ready." in page and "Import 1 failed." in page


def test_a_training_that_its_job_ends_is_told(instance: Any) -> None:
    """The job's row goes through claim and end, as its supervisor does it; no model is trained."""
    books = collection_of(1)
    client, since = client_of(make_member(books, "charlie", Role.ADMIN)), timezone.now().isoformat()
    Job.objects.create(collection=books, folder="/nowhere", options={"recipe": "prism"})
    job = leases.claim(Job)
    assert job is not None and count(client) == 0, "it goes on"
    leases.finish(job, Job.State.FINISHED)
    answer = client.get("/c/books/inbox/", {"since": since})
    assert "Training job 1 is finished." in answer.text and answer.status_code == 286 and count(client) == 1
