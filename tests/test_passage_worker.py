"""A real Celery worker takes a page that was asked for, and tells the page why it cannot be had."""

import time

import pytest

from annotation.aspect_models import PassageDraft
from annotation.aspects import drafts
from tests.aspects_scene import ice_scene
from tests.engine_parts import _standing_worker, worker

__all__ = ["_standing_worker", "worker"]
pytestmark = pytest.mark.slow


def test_a_worker_takes_the_page_and_says_that_its_address_is_private(worker: object) -> None:
    _collection, query, people = ice_scene()
    draft = drafts.ask(people["bob"], query, "http://127.0.0.1/")
    end = time.monotonic() + 30
    while time.monotonic() < end and PassageDraft.objects.get(pk=draft.pk).state in drafts.PENDING:
        time.sleep(0.1)
    row = PassageDraft.objects.get(pk=draft.pk)
    assert (row.state, "not on the public network" in str(row.problem)) == ("failed", True)
