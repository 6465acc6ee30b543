"""`hub push`: exports and models as commits of a hub, against a stand-in that answers as huggingface_hub reads it."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse
from huggingface_hub import constants

from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.models import AuditEntry, Role
from annotation.models.snapshots import Snapshot
from corpus.models import Collection
from tests.factories import make_member
from tests.hub_server import READ_ONLY, TOKEN, HubServer, serve_hub
from tests.judged_books import make_books
from training.models import Job, Model

pytestmark = pytest.mark.django_db


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with serve_hub() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.address)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # Its protocol has no stand-in.
        # Another test of this process may have imported huggingface_hub while its own network was closed.
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


@pytest.fixture
def books(settings: Any, tmp_path: Path) -> Collection:
    settings.VAR = tmp_path / "var"
    return make_books()


def make_export(books: Collection, name: str = "parquet", **options: Any) -> Snapshot:
    return write_snapshot(create_snapshot(books, ExportOptions(format=name, **options)))


def push(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, document and messages of `hub push books ...`."""
    out, err = StringIO(), StringIO()
    try:
        call_command("hub", "push", "books", *arguments, "--json", stdout=out, stderr=err)
    except SystemExit as stop:
        assert out.getvalue() == ""
        return int(stop.code or 0), {}, err.getvalue()
    return 0, json.loads(out.getvalue()), err.getvalue()


def test_an_export_is_pushed_and_pushed_again_makes_no_commit(hub: HubServer, books: Collection) -> None:
    made = make_export(books)
    code, told, err = push("team/books", "--export", str(made.number))
    assert code == 0 and not told["public"], err
    assert told["address"] == f"{hub.address}/datasets/team/books"
    repository = hub.repositories["datasets/team/books"]
    assert repository.private and repository.commits() == ["initial commit", f"Push dataset {made.number} of books"]
    files, folder = repository.files(), Path(made.folder)
    names = [".gitattributes", "manifest.json", *(file["name"] for file in made.manifest["files"])]
    assert sorted(files) == sorted(names)
    assert all(files[name] == (folder / name).read_bytes() for name in names[1:])
    uploads = hub.uploads
    code, again, _ = push("team/books", "--export", str(made.number))
    assert code == 0 and again["commit"] == told["commit"]
    assert len(repository.commits()) == 2 and hub.uploads == uploads
    acts = AuditEntry.objects.filter(act="export.pushed").order_by("pk")
    assert len(acts) == 2 and TOKEN not in str(acts[0].details)


def test_files_of_an_earlier_push_that_would_be_loaded_are_deleted(hub: HubServer, books: Collection) -> None:
    push("team/books", "--export", str(make_export(books, "prism", teacher="votes").number))
    assert "dev.jsonl" in hub.repositories["datasets/team/books"].files()
    push("team/books", "--export", str(make_export(books, "prism", teacher="votes", split=1.0).number))
    assert "dev.jsonl" not in hub.repositories["datasets/team/books"].files()


def test_a_model_is_pushed_with_all_its_files(hub: HubServer, books: Collection, tmp_path: Path) -> None:
    folder = tmp_path / "var" / "models" / "books" / "one"
    folder.mkdir(parents=True)
    for name in ("README.md", "reranker.json", "config.json", ".lock"):
        (folder / name).write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights" * 100)
    job = Job.objects.create(collection=books, folder=str(tmp_path), state=Job.State.FINISHED)
    model = Model.objects.create(collection=books, job=job, name="one", recipe="prism", base="tiny", folder=str(folder))
    code, told, _ = push("team/model", "--model", str(model.pk), "--public")
    assert code == 0 and told["public"]
    files = hub.repositories["models/team/model"].files()
    assert set(files) == {".gitattributes", "README.md", "reranker.json", "config.json", "model.safetensors"}


def test_private_data_never_goes_to_a_repository_that_everybody_reads(hub: HubServer, books: Collection) -> None:
    made = str(make_export(books, "csv").number)
    push("team/books", "--export", made)
    repository = hub.repositories["datasets/team/books"]
    repository.private = False
    code, _, err = push("team/books", "--export", made)
    assert code == 2 and "team/books is public" in err and len(repository.commits()) == 2
    assert push("team/books", "--export", made, "--public")[0] == 0


def test_what_fails_is_one_line_and_exit_2(hub: HubServer, books: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    made = str(make_export(books, "csv").number)
    for arguments, words in (
        (("others/books", "--export", made), "did not take others/books"),
        (("team/a/b", "--export", made), "did not take team/a/b"),
        (("team/books", "--export", "999"), "books has no files of this number"),
        (("team/books", "--model", "999"), "books has no files of this number"),
    ):
        code, _, err = push(*arguments)
        assert code == 2 and words in err and err.count("\n") == 1, err
    for token in ("hf_unknown", READ_ONLY):
        monkeypatch.setenv("HF_TOKEN", token)
        code, _, err = push("team/books", "--export", made)
        assert code == 2 and "not take team/books" in err and err.count("\n") == 1, err
    monkeypatch.delenv("HF_TOKEN")
    code, _, err = push("team/books", "--export", made)
    assert code == 2 and err.startswith("HF_TOKEN is not")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    code, _, err = push("team/books", "--export", made)
    assert code == 2 and "127.0.0.1:1 did not take" in err and err.count("\n") == 1
    assert not hub.repositories and not AuditEntry.objects.filter(act="export.pushed").exists()


def test_the_button_pushes_and_says_what_was_refused(hub: HubServer, books: Collection, client: Any) -> None:
    made = make_export(books, "csv")
    alice = make_member(books, "alice", Role.ADMIN).user
    client.force_login(alice)
    address = reverse("push_export", args=["books", made.number])
    assert address in client.get(reverse("exports", args=["books"])).content.decode()
    page = client.post(address, {"repository": "team/books"}, follow=True).content.decode()
    assert f"{hub.address}/datasets/team/books" in page and hub.repositories["datasets/team/books"].private
    page = client.post(address, {"repository": "others/books"}, follow=True).content.decode()
    assert "did not take others/books" in page
    assert AuditEntry.objects.get(act="export.pushed").person == alice
