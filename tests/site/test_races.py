"""What others make or delete while a page works: it answers as if they had come a moment earlier or later."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from annotation.models.snapshots import Snapshot
from annotation.quality.panels import applying
from corpus.collections import exported_sets
from corpus.errors import BadInput
from corpus.importing.confinement import confine, confined
from corpus.importing.detection import list_sources
from corpus.models import Collection
from corpus.races import explain_race
from judges.models import JudgeVersion, Panel
from judges.panels.offline_panel import ensure_offline
from store import downloads
from tests.factories import make_collection, make_member, make_user
from tests.judged_books import export, make_books
from training.jobs import pages
from training.jobs.model_files import list_model_files
from training.models import Model

pytestmark = pytest.mark.django_db


def test_the_second_of_two_collections_of_one_name_keeps_its_form(client: Client, monkeypatch) -> None:
    client.force_login(make_user("olga", is_owner=True))
    make_collection("c")
    look, looks = Collection.validate_unique, []

    def validate_unique(row: Collection, *args: Any, **kwargs: Any) -> None:
        """The first look, before the other request has stored its collection, finds nothing."""
        looks.append(row)
        if len(looks) > 1:
            look(row, *args, **kwargs)

    monkeypatch.setattr(Collection, "validate_unique", validate_unique)
    refused = client.post("/collections/new/", {"name": "c", "grades": "4"})
    assert refused.status_code == 422 and 'value="c"' in refused.content.decode()
    assert refused.context["form"].errors["name"] and (Collection.objects.count(), len(looks)) == (1, 2)


def test_of_two_first_panels_of_a_collection_the_later_holds(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_offline()
    books = make_collection("books")
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    for name in ("a", "b"):
        JudgeVersion.objects.create(name=name, provider="openai", model=name)
    applying.make_panel(collection=books, judges=["b"])
    found, looks = applying.base_panel, []

    def base_panel(*args: Any, **kwargs: Any) -> Panel:
        """The first look, before the other request has stored its panel, finds the default."""
        looks.append(args)
        return ensure_offline() if len(looks) == 1 else found(*args, **kwargs)

    monkeypatch.setattr(applying, "base_panel", base_panel)
    assert client.post("/c/books/models/panel/", {"judge": ["a"]}).status_code == 302
    assert Panel.objects.get(name="books:chosen").ensemble == ["a"] and len(looks) == 2


@pytest.fixture
def var(settings: Any, tmp_path: Path) -> Path:
    settings.VAR = tmp_path
    return tmp_path


def test_an_export_that_is_deleted_while_it_is_sent_is_not_found(client: Client, var: Path, monkeypatch) -> None:
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


def test_an_export_that_is_deleted_while_sets_are_listed_is_left_out(var: Path, monkeypatch) -> None:
    books = make_books()
    folder = var / "exports" / "books" / "1"
    export(books, "prism", folder, teacher="votes")
    manifests = [folder / "manifest.json", folder.parent / "2" / "manifest.json"]
    monkeypatch.setattr(exported_sets, "fetch_matching", lambda *_where: manifests)
    assert [name for name, _label in pages.training_sets(books)] == [str(folder)]


def test_a_file_of_a_model_that_is_deleted_while_they_are_listed_is_left_out(var: Path, monkeypatch) -> None:
    (var / "model").mkdir()
    (var / "model" / "config.json").write_text("{}")
    paths = [var / "model" / "config.json", var / "model" / "gone.json"]
    # A listing says of a file that it is there, and the next moment it is not.
    monkeypatch.setattr(Path, "rglob", lambda _folder, _pattern: iter(paths))
    monkeypatch.setattr(Path, "is_file", lambda _path: True)
    assert list_model_files(Model(folder=str(var / "model"))) == {"config.json": 2}


def test_an_upload_that_is_deleted_before_it_is_read_is_bad_input(tmp_path: Path, var: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    with confined(), pytest.raises(BadInput, match=r"corpus\.jsonl: the file was deleted"):
        list(confine(path, "corpus.jsonl", lambda: list_sources(path)))
    paths = (f"{var}/exports/x", "/nowhere/templates")
    missing = [FileNotFoundError(2, "No such file or directory", path) for path in paths]
    assert [explain_race(error) is None for error in missing] == [False, True]
