"""An attention check's page, addresses and API have the shape of another pair's (DREAM F.2)."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from annotation.models import LOWEST_PUBLIC_ID, Assignment, Membership
from annotation.work.quality_control import attention_checks
from tests.annotation.work.quality_control.test_care import HTMX, make_scene
from tests.api.conftest import call  # noqa: F401
from tests.factories import make_collection, make_member
from tests.queue_scene import signed_in

PAIRS = 20
pytestmark = pytest.mark.django_db


class Skeleton(HTMLParser):
    """The elements of a page with the names of their attributes, their classes and addresses; numbers left out."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.feed(re.sub(r"\d+", "N", page))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kept = [(name, value if name in ("class", "action", "href") or "url" in name else "") for name, value in attrs]
        self.parts.append(f"{tag} {kept}")


def shape(value: Any) -> Any:
    """What is left of an answer's JSON without its texts and numbers."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else type(value).__name__


@pytest.fixture
def alice() -> Membership:
    """An annotator of a collection whose pairs, checks among them, were all debated in the same words."""
    collection = make_collection("books", checks=0.2, batch=10)
    make_scene(collection, ordinary=PAIRS, known=8)
    attention_checks.make_checks(collection=collection, count=8, seed=1, by=None)
    return make_member(collection, "alice")


def lent(member: Membership) -> Assignment:
    return Assignment.objects.select_related("item").get(membership=member, state="open")


def test_the_page_and_the_addresses_of_a_check_have_the_shape_of_another_pairs(alice: Membership) -> None:
    client = signed_in(alice)
    client.post("/c/books/judge/next/", headers=HTMX)
    shapes: dict[bool, set[str]] = {True: set(), False: set()}
    for _ in range(PAIRS):
        lease = lent(alice)
        answer = {"item": lease.public_id, "token": lease.token, "grade": 1}
        page = client.post("/c/books/judge/submit/", answer, headers=HTMX).text
        assert int(re.search(r'data-item="(\d+)"', page)[1]) >= LOWEST_PUBLIC_ID
        assert "check" not in page
        shapes[lent(alice).item.reason == "check"].add("\n".join(Skeleton(page).parts))
    assert shapes[True] and shapes[True] == shapes[False]


def test_the_api_answers_with_a_check_as_with_another_pair(alice: Membership, call: Any) -> None:  # noqa: F811
    shapes: dict[bool, list[Any]] = {True: [], False: []}
    task = call(alice.user, "POST", "collections/books/task/claim").json()["task"]
    for _ in range(PAIRS):
        assert task["item"] >= LOWEST_PUBLIC_ID
        answer = {"item": task["item"], "token": task["token"], "grade": 1}
        task = call(alice.user, "POST", "collections/books/task/judge", answer).json()["task"]
        kind = shapes[lent(alice).item.reason == "check"]
        if (found := shape(task)) not in kind:
            kind.append(found)
    assert shapes[True] and shapes[True] == shapes[False]
