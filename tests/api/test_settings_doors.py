"""Settings are refused alike at their three doors: the command, the page and the API."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Membership, Role
from corpus.models import Collection
from tests.api.conftest import Call
from tests.called import call as run
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_member, make_pair
from tests.queue_scene import signed_in

pytestmark = pytest.mark.django_db
KEPT = {"title": "", "overlap": 1, "order": "uncertain", "lease_minutes": 30, "relevant_from": 1}


@pytest.fixture
def books() -> Collection:
    books = make_collection("books", grades=3)
    make_judgment(make_pair(books), make_assessor(books, "ensemble", "policy"), 1)
    return books


@pytest.fixture
def admin(books: Collection) -> Membership:
    return make_member(books, "alice", Role.ADMIN)


def by_command(folder: Path, name: str, value: Any) -> tuple[bool, str]:
    file = folder / "settings.toml"
    file.write_text(f"{name} = {value}\n")
    done = run("configure_collection", "books", file)
    return done.code == 0, done.err


def by_page(admin: Membership, name: str, value: Any) -> tuple[bool, str]:
    client = signed_in(admin)
    answer = client.post("/c/books/settings/", {**KEPT, name: value})
    return answer.status_code == 302, unescape(re.sub(r"\s+", " ", answer.content.decode()))


def by_api(call: Call, admin: Membership, name: str, value: Any) -> tuple[bool, str]:
    answer = call(admin.user, "PATCH", "collections/books/settings", {name: value})
    return answer.status_code == 200, " ".join([answer.json().get("detail", ""), answer.text])


def test_what_counts_as_relevant_stays_once_judges_labelled_and_every_door_says_why(books, admin, call, tmp_path):
    reason = "Judges have labelled pairs by the present value, 1, so it stays."
    doors = [
        by_command(tmp_path, "relevant_from", 2),
        by_page(admin, "relevant_from", 2),
        by_api(call, admin, "relevant_from", 2),
    ]
    for done, said in doors:
        assert not done and reason in said, said
    books.refresh_from_db()
    assert books.relevant_from == 1


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [
        ("relevant_from", 0, False), ("relevant_from", 4, False),
        ("lease_minutes", 0, False), ("lease_minutes", 1_440, True), ("lease_minutes", 1_441, False),
        ("overlap", 25, True), ("overlap", 26, False), ("daily_target", 10_001, False),
        ("min_judgment_ms", 10_000, True), ("min_judgment_ms", 10_001, False),
    ],
)  # fmt: skip
def test_the_three_doors_take_and_refuse_the_same_values(books, admin, call, tmp_path, name, value, fits):
    before = getattr(books, name)
    for door in (
        lambda: by_command(tmp_path, name, value),
        lambda: by_page(admin, name, value),
        lambda: by_api(call, admin, name, value),
    ):
        done, said = door()
        assert done is fits, said
        books.refresh_from_db()
        assert getattr(books, name) == (value if fits else before)
        Collection.objects.filter(pk=books.pk).update(**{name: before})
