"""The pages of comparisons by judges in a real Chromium, in every look."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from annotation.models import Role
from judges.panels.offline_panel import ensure_offline
from tests.annotation.work.comparing.judged_scene import begin, judged, make_set, vote
from tests.factories import make_member
from tests.looks import check_looks

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_pages_of_judges_are_within_reach_in_every_look(
    new_page: Callable[..., Any], violations: Any, instance: object
) -> None:
    maps = make_set()
    ada = make_member(maps.collection, "ada", Role.ADMIN)
    ensure_offline()
    vote(maps, "alice", {1: "first", 2: "second", 3: "equal", 5: "both_bad"})
    # In a thread of its own, since the browser's driver runs an event loop in this one.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(judged, maps, "offline-answers", "offline-bm25", "offline-ngrams").result()
        pool.submit(lambda: connection.close()).result()
    begin(maps, "offline-coverage")
    home = "/c/maps/comparisons"
    check_looks(new_page, violations, ada.user, [f"{home}/1/", f"{home}/judges/?set=1", f"{home}/judges/1/"])
