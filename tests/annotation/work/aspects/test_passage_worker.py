"""A real Celery worker takes a page that was asked for, and tells the page why it cannot be had."""

import pytest

from annotation.models.aspects import PassageDraft
from annotation.work.aspects import drafts
from corpus.url_fetch.problems import describe_problem
from tests.aspects_scene import ice_scene
from tests.engine_parts import _standing_worker, worker
from tests.instances import until

__all__ = ["_standing_worker", "worker"]
pytestmark = pytest.mark.slow


def test_a_worker_takes_the_page_and_says_why_it_cannot_be_had(worker: object) -> None:
    _collection, query, people = ice_scene()
    draft = drafts.request_page(people["bob"], query, "http://nobody.invalid/")
    until(lambda: PassageDraft.objects.get(pk=draft.pk).state not in drafts.PENDING)
    row = PassageDraft.objects.get(pk=draft.pk)
    assert (row.state, "not be found" in describe_problem(row.error)) == ("failed", True)
