"""Long work of real workers reaches the inbox: a large export, an import that is refused, and a training."""

import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from annotation.exports import services as exports
from annotation.models import Role
from corpus.models import Label
from jobs import leases
from tests.engine_parts import _standing_worker as _standing_worker
from tests.engine_parts import collection_of
from tests.engine_parts import worker as worker  # a fixture
from tests.factories import client_of, make_member
from tests.instances import until
from training.models import Job

pytestmark = pytest.mark.django_db(transaction=True)


def count(client: Client) -> int:
    return int(re.search(r'data-count="(\d+)"', client.get("/c/books/inbox/").text)[1])


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
