"""`hub push`: exports and models as commits of a hub, against a stand-in that answers as huggingface_hub reads it."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone
from huggingface_hub import constants

from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.home.inbox.selectors import list_ended
from annotation.models import AuditEntry, Role, User
from annotation.models.hub import HubPush
from annotation.models.snapshots import Snapshot
from config.hub.pushing import list_sizes, push_folder
from config.hub.services import perform_push
from corpus.models import Collection
from jobs.leases import claim
from judges.models.keys import StoredKey
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
    sizes, steps = list(list_sizes(folder).values()), list[tuple[int, int]]()
    push_folder(books, "dataset", made.number, "team/books", public=False, progress=lambda *step: steps.append(step))
    assert steps == [(sum(sizes[:place]), sum(sizes)) for place in range(len(sizes) + 1)], "bytes that are done"


def test_a_model_is_pushed_with_all_its_files(hub: HubServer, books: Collection, tmp_path: Path) -> None:
    folder = tmp_path / "var" / "models" / "books" / "one"
    folder.mkdir(parents=True)
    for name in ("README.md", "reranker.json", "config.json", ".lock", "model.safetensors"):
        (folder / name).write_text("{}")
    job = Job.objects.create(collection=books, folder=str(tmp_path), state=Job.State.FINISHED)
    model = Model.objects.create(collection=books, job=job, name="one", recipe="prism", base="tiny", folder=str(folder))
    code, told, _ = push("team/model", "--model", str(model.pk), "--public")
    assert code == 0 and told["public"]
    files = hub.repositories["models/team/model"].files()
    assert set(files) == {".gitattributes", "README.md", "reranker.json", "config.json", "model.safetensors"}


def test_private_data_never_goes_to_a_public_repository_and_files_of_an_earlier_push_are_deleted(hub, books) -> None:
    for split, is_there in (({}, True), ({"split": 1.0}, False)):
        push("team/sets", "--export", str(make_export(books, "prism", teacher="votes", **split).number))
        assert ("dev.jsonl" in hub.repositories["datasets/team/sets"].files()) == is_there
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
        (("team/a/b", "--export", made), "repository: Enter the owner and the name"),
        (("team/books", "--export", "999"), "books has no files of this number"),
        (("team/books", "--model", "999"), "books has no files of this number"),
    ):
        code, _, err = push(*arguments)
        assert code == 2 and words in err and err.count("\n") == 1, err
    nowhere = "http://127.0.0.1:1"
    for token, endpoint, words in (
        ("hf_unknown", hub.address, "not take team/books"),
        (READ_ONLY, hub.address, "not take team/books"),
        ("", hub.address, "HF_TOKEN is not"),
        (TOKEN, nowhere, "127.0.0.1:1 did not take"),
    ):
        monkeypatch.setenv("HF_TOKEN", token)
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        code, _, err = push("team/books", "--export", made)
        assert code == 2 and words in err and err.count("\n") == 1, err
    assert not hub.repositories and not AuditEntry.objects.filter(act="export.pushed").exists()


@pytest.fixture
def alice(books: Collection, client: Any) -> User:
    """An admin of the collection, signed in."""
    alice = make_member(books, "alice", Role.ADMIN).user
    client.force_login(alice)
    return alice


def ask(client: Any, made: Snapshot, repository: str, **more: str) -> str:
    """The address of the page of a push, which was asked for there and confirmed."""
    address = reverse("push_export", args=["books", made.number])
    asked = client.post(address, {"repository": repository, "confirm": "1", **more})
    assert asked.status_code == 302, asked.text
    return address


def work() -> HubPush:
    """Do the waiting push as a worker does."""
    job = claim(HubPush)
    assert job is not None
    perform_push(job, lambda: False)
    job.refresh_from_db()
    return job


def test_a_page_says_who_will_read_which_files_before_a_worker_pushes_them(hub, books, client, alice: User) -> None:
    made = make_export(books, "csv")
    address = reverse("push_export", args=["books", made.number])
    assert address in client.get(reverse("exports", args=["books"])).text
    public = client.post(address, {"repository": "team/books", "public": "on"}).text
    private = client.post(address, {"repository": "team/books"}).text
    assert "Anyone on the internet" in public and "texts of queries and documents" in public
    assert "Only people with access" in private and "manifest.json" in private
    assert client.post(address, {"repository": "books", "confirm": "1"}).status_code == 422
    assert not HubPush.objects.exists() and not hub.requests
    ask(client, made, "team/books")
    again = client.post(address, {"repository": "team/books", "confirm": "1"}).text
    assert "These files are being pushed already" in again and HubPush.objects.count() == 1
    assert work().state == HubPush.READY and hub.repositories["datasets/team/books"].private
    assert f"{hub.address}/datasets/team/books" in client.get(address).text
    acts = AuditEntry.objects.filter(act__startswith="export.push").order_by("pk")
    assert [(entry.act, entry.person) for entry in acts] == [("export.push-asked", alice), ("export.pushed", alice)]
    (ended,) = list_ended(books, alice, timezone.now())
    assert (ended.sentence, ended.address) == (f"Export {made.number} was pushed to the hub.", address)
    refused = make_export(books, "csv")
    address = ask(client, refused, "others/books")
    assert work().state == HubPush.FAILED and "did not take others/books" in client.get(address).text
    (ended,) = (row for row in list_ended(books, alice, timezone.now()) if row.failed)
    assert ended.sentence == f"The push of export {refused.number} to the hub failed."


def test_a_stored_token_is_used_and_stands_nowhere(hub, books, client, alice: User, monkeypatch, settings) -> None:
    monkeypatch.delenv("HF_TOKEN")
    made, settings.STORED_KEYS_SECRETS = make_export(books, "csv"), ["s" * 32]
    address, place = reverse("push_export", args=["books", made.number]), {"kind": "dataset", "number": made.number}
    refused = client.post(address, {"repository": "team/books", "confirm": "1"})
    assert refused.status_code == 422 and "There is no token" in refused.text
    page = client.post(reverse("hub_token", args=["books"]), {"token": TOKEN, **place}, follow=True)
    assert page.redirect_chain[-1][0] == address and TOKEN not in page.text
    assert f"Ends in …{TOKEN[-4:]}" not in page.text, "it is short"
    ask(client, made, "team/books")
    assert work().state == HubPush.READY
    stored = StoredKey.objects.get()
    assert TOKEN not in str(list(AuditEntry.objects.values()) + list(StoredKey.objects.values()))
    # Another hub does not get it.
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    ask(client, made, "team/books")
    assert "entered for something else" in work().error
    assert stored.collection == books
    client.post(reverse("hub_token", args=["books"]), {"delete": "1", **place})
    assert not StoredKey.objects.exists()
