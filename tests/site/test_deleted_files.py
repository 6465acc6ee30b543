"""Files that are deleted while a page lists, reads or sends them: no page fails."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from annotation.models.snapshots import Snapshot
from corpus.collections import exported_sets
from corpus.errors import BadInput
from corpus.importing.confinement import confine, confined
from corpus.importing.detection import list_sources
from corpus.races import explain_race
from store import downloads
from tests.factories import make_member
from tests.judged_books import export, make_books
from training.jobs import pages
from training.jobs.model_files import list_model_files
from training.models import Model


@pytest.fixture
def var(settings: Any, tmp_path: Path) -> Path:
    settings.VAR = tmp_path
    return tmp_path


@pytest.mark.django_db
def test_an_export_that_is_deleted_while_it_is_sent_is_not_found(
    client: Client, var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(make_member(make_books(), "alice", Role.ADMIN).user)
    client.post(reverse("make_export", args=["books"]), {"format": "prism", "teacher": "votes"})
    open_stream = downloads.open_stream

    def open_deleted(path: Path) -> Any:
        path.unlink()
        return open_stream(path)

    monkeypatch.setattr(downloads, "open_stream", open_deleted)
    address = reverse("export_file", args=["books", Snapshot.objects.get().number, "train.jsonl"])
    assert client.get(address).status_code == 404
    assert client.get(address).status_code == 404, "it is gone before it is looked for"


@pytest.mark.django_db
def test_an_export_that_is_deleted_while_sets_are_listed_is_left_out(
    var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = make_books()
    folder = var / "exports" / "books" / "1"
    export(books, "prism", folder, teacher="votes")
    manifests = [folder / "manifest.json", folder.parent / "2" / "manifest.json"]
    monkeypatch.setattr(exported_sets, "fetch_matching", lambda *_where: manifests)
    assert [name for name, _label in pages.training_sets(books)] == [str(folder)]


def test_a_file_of_a_model_that_is_deleted_while_they_are_listed_is_left_out(
    var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (var / "model").mkdir()
    (var / "model" / "config.json").write_text("{}")
    paths = [var / "model" / "config.json", var / "model" / "gone.json"]
    # A listing says of a file that it is there, and the next moment it is not.
    monkeypatch.setattr(Path, "rglob", lambda _folder, _pattern: iter(paths))
    monkeypatch.setattr(Path, "is_file", lambda _path: True)
    assert list_model_files(Model(folder=str(var / "model"))) == {"config.json": 2}


def test_an_upload_that_is_deleted_before_it_is_read_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    with confined(), pytest.raises(BadInput, match=r"corpus\.jsonl: the file was deleted"):
        list(confine(path, "corpus.jsonl", lambda: list_sources(path)))


def test_only_files_of_the_instance_are_taken_for_deleted(var: Path) -> None:
    paths = (f"{var}/exports/x", "/nowhere/templates")
    missing = [FileNotFoundError(2, "No such file or directory", path) for path in paths]
    assert [explain_race(error) is None for error in missing] == [False, True]
