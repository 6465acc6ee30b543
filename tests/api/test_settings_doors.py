"""Settings are refused alike at their three doors: the command, the page and the API."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Role
from corpus.models import Collection
from tests.api.conftest import Call
from tests.called import call as run
from tests.evidence import make_assessor, make_judgment
from tests.factories import client_of, make_collection, make_member, make_pair

pytestmark = pytest.mark.django_db
KEPT = {"title": "", "overlap": 1, "order": "uncertain", "lease_minutes": 30, "relevant_from": 1}


@pytest.fixture
def books() -> Collection:
    books = make_collection("books", grades=3)
    make_judgment(make_pair(books), make_assessor(books, "ensemble", "policy"), 1)
    return books


Door = Callable[[str, Any], tuple[bool, str]]


@pytest.fixture
def doors(call: Call, books: Collection, tmp_path: Path) -> list[Door]:
    """What changes a setting: whether it was taken, and what was answered."""
    alice = make_member(books, "alice", Role.ADMIN)
    file = tmp_path / "settings.toml"

    def by_command(name: str, value: Any) -> tuple[bool, str]:
        file.write_text(f"{name} = {value}\n")
        done = run("configure_collection", "books", file)
        return done.code == 0, done.err

    def by_page(name: str, value: Any) -> tuple[bool, str]:
        answer = client_of(alice).post("/c/books/settings/", {**KEPT, name: value})
        return answer.status_code == 302, unescape(re.sub(r"\s+", " ", answer.text))

    def by_api(name: str, value: Any) -> tuple[bool, str]:
        answer = call(alice.user, "PATCH", "collections/books/settings", {name: value})
        return answer.status_code == 200, " ".join([answer.json().get("detail", ""), answer.text])

    return [by_command, by_page, by_api]


def test_what_counts_as_relevant_stays_once_judges_labelled_and_every_door_says_why(books, doors):
    for door in doors:
        done, answer = door("relevant_from", 2)
        assert not done and "Judges have labelled pairs by the present value, 1, so it stays." in answer, answer
    books.refresh_from_db()
    assert books.relevant_from == 1


def test_the_three_doors_take_and_refuse_the_same_values(books: Collection, doors: list[Door]) -> None:
    for name, value, fits in (
        ("relevant_from", 0, False), ("relevant_from", 4, False), ("lease_minutes", 0, False),
        ("lease_minutes", 1_440, True), ("lease_minutes", 1_441, False), ("overlap", 25, True), ("overlap", 26, False),
        ("daily_target", 10_001, False), ("min_judgment_ms", 10_000, True), ("min_judgment_ms", 10_001, False),
    ):  # fmt: skip
        books.refresh_from_db()
        before = getattr(books, name)
        for door in doors:
            done, answer = door(name, value)
            assert done is fits, answer
            books.refresh_from_db()
            assert getattr(books, name) == (value if fits else before)
            Collection.objects.filter(pk=books.pk).update(**{name: before})
