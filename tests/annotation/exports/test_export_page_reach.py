"""The page of exports runs little code: a developer reads at most 20 files that are not those of every page."""

import sys
from pathlib import Path
from types import FrameType

import pytest
from django.conf import settings
from django.test import Client

from annotation.models import Role
from tests.factories import client_of, make_member
from tests.judged_books import make_books

pytestmark = pytest.mark.django_db


def files_of(client: Client, address: str) -> set[str]:
    """Return the product files whose functions a visit executes."""
    client.get(address)  # The first visit imports modules and compiles templates.
    files: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(settings.BASE_DIR):
            files.add(path.relative_to(settings.BASE_DIR).as_posix())

    sys.setprofile(note)
    try:
        assert client.get(address).status_code == 200
    finally:
        sys.setprofile(None)
    return {name for name in files if not name.startswith(("tests/", ".venv/"))}


def test_a_visit_executes_at_most_20_files_beyond_those_of_every_page() -> None:
    books = make_books()
    client = client_of(make_member(books, "alice", Role.ADMIN))
    files = files_of(client, "/c/books/exports/") - files_of(client, "/glossary/")
    assert "annotation/exports/forms.py" in files
    assert len(files) <= 20, sorted(files)
