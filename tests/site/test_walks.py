"""The three walks of docs/developers.md: the files whose functions run are those that a reader is told of."""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from annotation.models import Role
from config.env import ROOT
from corpus.models import Label
from judges.engine.plan import load_plan
from judges.models import Campaign
from judges.workers.child import Child
from store.sql import database_parameters
from tests.factories import make_collection, make_member
from tests.judged_books import make_books
from tests.judging_scene import make_scene
from tests.queue_scene import signed_in

EVERY_REQUEST = ("config/", "annotation/access/")
"""Middleware, languages, permissions: of every page, and of none in particular."""
APPS = (
    "actions/",
    "annotation/",
    "api/",
    "benchmark/",
    "charts/",
    "corpus/",
    "jobs/",
    "judges/",
    "store/",
    "training/",
)
DOCS = (ROOT / "docs" / "developers.md").read_text()


def walk(title: str) -> list[str]:
    """The files that a walk of the documentation names, in its order."""
    section = DOCS.split(f"### {title}\n", 1)[1].split("\n##", 1)[0]
    return re.findall(r"^\| `([^`]+)` \| \S", section, re.M)


@contextmanager
def traced() -> Iterator[set[str]]:
    """The product's files whose functions are called meanwhile, in this thread and those that start."""
    files: set[str] = set()
    root = f"{ROOT}/"

    def note(frame: FrameType, event: str, _arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(root):
            files.add(code.co_filename.removeprefix(root))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        files -= {file for file in files if not file.startswith(APPS) or file.startswith(EVERY_REQUEST)}


def frame_of_pages(client: Client) -> set[str]:
    """The files that every page passes: middleware, navigation, languages. Asked twice, as the first fills caches."""
    client.get("/accounts/")
    with traced() as files:
        assert client.get("/glossary/").status_code == 200
    return files


@pytest.mark.django_db
def test_submitting_a_judgment_passes_the_files_of_its_walk() -> None:
    collection = make_collection("books", grades=3, relevant_from=2, lease_minutes=10)
    make_scene(collection, 3)
    client = signed_in(make_member(collection, "alice"))
    frame = frame_of_pages(client)

    def claim() -> dict[str, str]:
        page = client.post("/c/books/judge/next/", headers={"HX-Request": "true"}).text
        return {name: re.search(rf'name="{name}"\s+value="([^"]*)"', page)[1] for name in ("item", "token")}

    client.post("/c/books/judge/submit/", {**claim(), "grade": 2})
    fields = claim()
    with traced() as files:
        answer = client.post("/c/books/judge/submit/", {**fields, "grade": 2, "comment": "plain"})
    assert answer.status_code == 303
    passed = files - frame
    assert passed == set(walk("Submitting a judgment"))
    assert len(passed) <= 10


@pytest.mark.django_db
def test_the_page_of_exports_passes_the_files_of_its_walk(client: Client) -> None:
    books = make_books()
    client.force_login(make_member(books, "alice", Role.ADMIN).user)
    frame = frame_of_pages(client)
    client.get("/c/books/exports/")
    with traced() as files:
        assert client.get("/c/books/exports/").status_code == 200
    passed = files - frame
    assert passed == set(walk("The exports page"))
    assert len(passed) <= 20


@pytest.mark.django_db(transaction=True)
def test_an_import_and_its_judging_pass_the_files_of_their_walk(tmp_path: Path, settings) -> None:
    settings.VAR = tmp_path / "var"
    settings.VAR.mkdir()
    documents, queries = tmp_path / "documents.jsonl", tmp_path / "queries.jsonl"
    documents.write_text('{"_id": "d1", "text": "blue birds fly"}\n{"_id": "d2", "text": "stones are heavy"}\n')
    queries.write_text('{"_id": "q1", "text": "blue birds"}\n')
    quiet = {"stdout": StringIO(), "stderr": StringIO()}
    with traced() as files:
        sources = ["--corpus", str(documents), "--queries", str(queries), "--bm25", "2"]
        call_command("import_collection", "birds", *sources, **quiet)
        call_command("judge", "birds", "--policy", "single", **quiet)
        plan = load_plan(Campaign.objects.get().pk)
        connection.close()
        child = Child(database_parameters(), lambda: False)
        while child.run_campaign(plan) is not None:
            pass
        child.close()
    assert Label.objects.filter(pair__collection__name="birds").exists()
    stations = walk("From an import to a label")
    assert [file for file in stations if file not in files] == []
    assert 20 <= len(stations) <= 30
