"""What annotators read of a debate: all rounds, or the final one; kept with each judgment's arm."""

import pytest
from django.core.management import call_command
from django.test import Client

from annotation.models import Assignment, Role
from corpus.models import Collection, Judgment
from tests.annotation.work.judging.test_judging_pages import HTMX, claim, signed_in
from tests.factories import make_collection, make_member
from tests.judging_scene import make_scene

pytestmark = pytest.mark.django_db
EARLY = "It tells what happens on an update, not which order iteration has."
LATE = "The opponent stretches one sentence over what is not said."


@pytest.fixture
def books() -> Collection:
    collection = make_collection("books")
    make_scene(collection, 3)
    return collection


@pytest.fixture
def client(books: Collection) -> Client:
    return signed_in(make_member(books, "alice"))


def configure(tmp_path, rounds: str) -> None:
    (tmp_path / "settings.toml").write_text(f'rounds = "{rounds}"\n')
    call_command("configure_collection", "books", str(tmp_path / "settings.toml"))


def test_the_final_round_alone_is_shown_and_kept_with_the_judgment(client: Client, tmp_path) -> None:
    page = client.post("/c/books/judge/next/", headers=HTMX).text
    assert EARLY in page and LATE in page
    client.post("/c/books/judge/submit/", {**claim(client), "grade": "1"})
    configure(tmp_path, "final")
    page = client.post("/c/books/judge/next/", headers=HTMX).text
    assert EARLY not in page and LATE in page
    assert "after 2 rounds" in page, "why it came is told as it was"
    client.post("/c/books/judge/submit/", {**claim(client), "grade": "1"})
    assert list(Judgment.objects.order_by("pk").values_list("arm", flat=True)) == ["shown:all", "shown:final"]


def test_in_the_reveal_arm_the_final_round_follows_the_first_vote(client: Client, tmp_path) -> None:
    configure(tmp_path, "final")
    Collection.objects.update(arms={"shown": 0, "hidden": 0, "reveal": 1})
    page = client.post("/c/books/judge/next/", headers=HTMX).text
    assert EARLY not in page and LATE not in page
    page = client.post("/c/books/judge/submit/", {**claim(client), "grade": "0"}, headers=HTMX).text
    assert EARLY not in page and LATE in page
    client.post("/c/books/judge/submit/", {**claim(client), "grade": "1"})
    given = Judgment.objects.order_by("pk").values_list("step", "arm")
    assert list(given) == [("first", "reveal:final"), ("final", "reveal:final")]


def test_a_whole_query_shows_it_so_too_and_adjudicators_read_all(client: Client, books: Collection, tmp_path) -> None:
    configure(tmp_path, "final")
    client.post("/c/books/judge/query/next/")
    page = client.get("/c/books/judge/query/").text
    assert EARLY not in page and LATE in page
    lease = Assignment.objects.filter(state="open").first()
    client.post("/c/books/judge/flag/", {"item": lease.item_id, "token": lease.token, "note": "Look."})
    carol = signed_in(make_member(books, "carol", Role.ADJUDICATOR))
    page = carol.get("/c/books/adjudicate/").text
    assert EARLY in page and LATE in page
