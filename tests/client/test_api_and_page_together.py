"""Ten annotators by the API and ten by the page in one queue: exact overlap, and nothing lost."""

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from annotation.models import Assignment, Membership
from api.tokens import make_token
from corpus.labels import rebuild_labels
from corpus.models import Item, Judgment
from judges.models import Tally
from quorum_client import Quorum
from tests.factories import make_collection, make_member
from tests.judging_clients import Annotator
from tests.judging_scene import make_scene
from tests.plugin_browser import session_of

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def judge_by_api(address: str, token: str) -> list[int]:
    """Judge until the queue is empty, each second pair twice, and return the items."""
    judged: list[int] = []
    with Quorum(address, token) as quorum:
        books = quorum.collection("books")
        task = books.request("POST", "task/claim")["task"]
        while task is not None:
            judgment = {"item": task["item"], "token": task["token"], "grade": task["item"] % 2}
            for _ in range(1 + task["item"] % 2):
                answer = books.request("POST", "task/judge", judgment)
            judged.append(task["item"])
            task = answer["task"]
    return judged


async def judge_by_page(annotator: Annotator) -> list[int]:
    await annotator.work(time.perf_counter() + 60)
    return annotator.judged


def test_ten_by_the_api_and_ten_by_the_page_share_a_queue(live_site: str, instance: dict[str, str]) -> None:
    collection = make_collection("books", overlap=3)
    items = make_scene(collection, 60, overlap=3)
    members = [make_member(collection, f"annotator-{number}") for number in range(20)]
    tokens = [make_token(one.user, None, name="n", scopes=["judge"], days=1)[1] for one in members[:10]]
    port = urlsplit(live_site).port
    assert port is not None
    sessions = [session_of(member.user) for member in members[10:]]
    problems: list[str] = []

    async def everybody() -> list[list[int]]:
        pages = [
            Annotator(port, "books", session, scheme="http", repeat=1 + n % 2) for n, session in enumerate(sessions)
        ]
        loop = asyncio.get_running_loop()
        by_api = [loop.run_in_executor(threads, judge_by_api, live_site, token) for token in tokens]
        found = await asyncio.gather(*by_api, *map(judge_by_page, pages))
        problems.extend(problem for one in pages for problem in one.problems)
        return found

    # A claim skips what another transaction holds, so somebody may have left a moment too early: one more walk.
    with ThreadPoolExecutor(len(tokens)) as threads:
        walks = [asyncio.run(everybody()) for _ in range(2)]

    assert problems == []
    assert set(Item.objects.values_list("taken", "done", "overlap")) == {(3, 3, 3)}
    stored = Counter(Judgment.objects.values_list("item_id", "assessor_id"))
    assert set(stored.values()) == {1} and len(stored) == len(items) * 3
    items_of = dict(Assignment.objects.values_list("public_id", "item_id"))
    told = {
        (items_of[item], member.assessor_id)
        for walk in walks
        for member, judged in _by_member(members, walk)
        for item in judged
    }
    assert told == set(stored)
    by_api = {member.assessor_id for member in members[:10]}
    assert 0 < sum(assessor in by_api for _item, assessor in stored) < len(stored)
    settled = Item.objects.filter(state="settled").count()
    assert sum(Tally.objects.filter(key="settled").values_list("value", flat=True)) == settled
    assert rebuild_labels(collection) == 0


def _by_member(members: list[Membership], walk: list[list[int]]) -> list[tuple[Membership, list[int]]]:
    return list(zip(members, walk, strict=True))
