"""Exports, uploads and pages of one machine on another: the rooms that keep files (issue 17, check 5)."""

from base64 import b64encode
from errno import ENOSPC
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client

from annotation.data.imports import shared_parts, uploads
from annotation.exports import snapshots
from annotation.exports.forms import keep_upload
from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import begin_again, create_snapshot, write_snapshot
from annotation.models import Role
from annotation.models.imports import FileImport, Upload
from annotation.models.snapshots import Snapshot
from corpus.collections.removal import delete_collection
from corpus.models import Collection, Document
from jobs.leases import Lease
from store.files import fetch
from store.models import StoredFile
from store.objects import ObjectStore, StoreUnavailable
from tests.called import call
from tests.evidence import make_label
from tests.factories import client_of, make_collection, make_document, make_member, make_pair, make_query, make_user
from tests.imported_files import work_off
from tests.instances import until
from tests.machines import Turn, turn_to
from tests.training_sets import write_set
from training.jobs import pages, shared_folder
from training.jobs.shared_folder import FolderPublisher
from training.models import Job
from training.recipes.job_folder import JobFolder

__all__ = ["turn_to"]

pytestmark = pytest.mark.django_db
CONTENT = b"".join(b'{"_id": "e%d", "text": "Owls hunt at night."}\n' % number for number in range(50))


@pytest.fixture
def birds() -> Collection:
    birds = make_collection("birds")
    query, document = make_query(birds, external_id="q1"), make_document(birds, external_id="d1")
    make_label(make_pair(birds, query, document), 1, "people")
    return birds


@pytest.fixture
def charlie(birds: Collection) -> Client:
    return client_of(make_member(birds, "charlie", Role.ADMIN))


def export(birds: Collection, form: str = "qrels", **options: Any) -> Snapshot:
    return write_snapshot(create_snapshot(birds, ExportOptions(format=form, **options)))


def test_an_export_of_one_machine_is_downloaded_from_another_and_leaves_no_name(birds, charlie, turn_to, tmp_path):
    turn_to("a")
    made = export(birds)
    b = turn_to("b")
    address = f"/c/birds/exports/{made.number}/qrels.txt"
    assert address in charlie.get("/c/birds/exports/").text and not (b / "exports").exists()
    assert b"".join(charlie.get(address).streaming_content) == b"q1 0 d1 1\n"
    assert Snapshot.objects.get().folder.startswith(str(b))
    turn_to("a")
    assert StoredFile.objects.count() == 2
    begin_again(made)
    assert not StoredFile.objects.exists()
    export(birds)
    delete_collection(birds)
    assert not StoredFile.objects.exists()


def test_a_store_that_is_away_costs_the_export_and_leaves_no_file_and_a_page_says_so(
    birds: Collection, charlie: Client, turn_to: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = turn_to("a")

    def refuse(*_: object) -> None:
        raise StoreUnavailable("The store is away")

    with monkeypatch.context() as away:
        away.setattr(ObjectStore, "put", refuse)
        with pytest.raises(StoreUnavailable):
            export(birds)
    row = Snapshot.objects.get()
    assert (row.state, row.error) == ("failed", "The store is away")
    assert not list((a / "exports").rglob("*.txt")) and not StoredFile.objects.exists()
    made = export(birds)
    turn_to("b")
    monkeypatch.setattr(ObjectStore, "open", refuse)
    answer = charlie.get(f"/c/birds/exports/{made.number}/qrels.txt")
    assert answer.status_code == 503 and "file store" in answer.text


def test_a_worker_elsewhere_has_the_run_and_the_tokenizer_that_were_uploaded(birds, turn_to: Turn, monkeypatch) -> None:
    make_pair(birds, birds.query_set.get(), make_document(birds, external_id="d2"))
    turn_to("a")
    run = keep_upload(birds, SimpleUploadedFile("bm25.run", b"q1 Q0 d2 1 9.5 bm25\n"), "run")
    options = ExportOptions(format="prism", run=run, teacher="labels", split=1.0, allow_incomplete=True)
    made = create_snapshot(birds, options)
    b = turn_to("b")
    depths = [len(connection.savepoint_ids)]

    def fetch_at_depth(path: Path) -> Path:
        depths.append(len(connection.savepoint_ids))
        return fetch(path)

    monkeypatch.setattr(snapshots, "fetch", fetch_at_depth)
    made = write_snapshot(Snapshot.objects.select_related("collection").get(pk=made.pk))
    assert len(depths) == 2 and len(set(depths)) == 1, "no transaction is open while the store is asked"
    assert made.folder.startswith(str(b)) and made.manifest["options"]["run"]["name"] == "bm25.run"
    assert (b / "exports" / "birds" / "runs").is_dir()
    turn_to("a")
    ((folder, _label),) = pages.training_sets(birds)
    assert folder.startswith(str(turn_to("a"))) and (Path(folder) / "manifest.json").exists()


def send(client: Client, url: str, offset: int, data: bytes) -> Any:
    kind = "application/offset+octet-stream"
    return client.generic("PATCH", url, data, kind, headers={"Upload-Offset": str(offset), "Tus-Resumable": "1.0.0"})


def test_an_upload_goes_on_at_another_machine_and_is_imported_by_a_third(charlie: Client, turn_to: Turn) -> None:
    a = turn_to("a")
    about = f"filename {b64encode(b'corpus.jsonl').decode()}"
    headers = {"Upload-Length": str(len(CONTENT)), "Upload-Metadata": about, "Tus-Resumable": "1.0.0"}
    url = str(charlie.generic("POST", "/c/birds/import/uploads/", headers=headers)["Location"])
    assert send(charlie, url, 0, CONTENT[:100])["Upload-Offset"] == "100"
    turn_to("b")
    assert charlie.head(url)["Upload-Offset"] == "100"
    assert send(charlie, url, 100, CONTENT[100:500])["Upload-Offset"] == "500"
    again = send(charlie, url, 100, CONTENT[100:500])
    assert (again.status_code, again["Upload-Offset"]) == (409, "500")
    turn_to("a")
    upload = Upload.objects.get()
    with uploads.path_of(upload).open("ab") as file:
        file.write(b"what a killed process had taken and told nobody of")
    assert send(charlie, url, 500, CONTENT[500:])["Upload-Offset"] == str(len(CONTENT))
    assert (a / "uploads" / "birds" / str(upload.pk)).read_bytes() == CONTENT
    turn_to("c")
    answer = charlie.post("/c/birds/import/", {"upload": [upload.pk]})
    assert answer.status_code == 302, answer.text
    turn_to("d")
    work_off()
    row = FileImport.objects.get()
    assert (row.state, row.error) == ("ready", "")
    charlie.post(f"/c/birds/import/{row.number}/start/")
    turn_to("e")
    work_off()
    assert Document.objects.filter(external_id="e49").exists()
    assert not StoredFile.objects.exists() and not Upload.objects.exists()


def test_a_long_request_is_published_while_it_goes_on_and_no_part_is_taken_twice(birds, turn_to, monkeypatch) -> None:
    monkeypatch.setattr(shared_parts, "ROOM", 4)
    monkeypatch.setattr(uploads, "PART", 2)
    turn_to("a")
    upload = uploads.begin_upload(birds, make_user("dora"), "x", 10)
    stream, seen = BytesIO(b"0123456789"), []

    def read(most: int) -> bytes:
        seen.append(uploads.count_received(upload))
        return stream.read(most)

    assert uploads.add_part(upload, 0, read) == 10
    assert seen == [0, 0, 4, 4, 8]
    turn_to("b")
    assert uploads.fetch_upload(upload).read_bytes() == b"0123456789"
    turn_to("a")
    upload = uploads.begin_upload(birds, upload.owner, "y", 4)

    def read_while_another_is_faster(_most: int) -> bytes:
        turn_to("b")
        uploads.add_part(upload, 0, BytesIO(b"bbbb").read)
        turn_to("a")
        return b"aaaa"

    with pytest.raises(uploads.UploadConflict):
        uploads.add_part(upload, 0, read_while_another_is_faster)
    assert uploads.fetch_upload(upload).read_bytes() == b"bbbb"


def test_the_command_shows_fills_and_empties(birds: Collection, turn_to: Turn, settings: Any) -> None:
    def run(act: str) -> dict[str, Any]:
        return dict(call("store", act, "--json").json)

    a, address = turn_to("a"), settings.STORE
    settings.STORE = ""
    made = export(birds)
    write_set(a / "exports" / "birds" / "one")
    job = a / "jobs" / "birds" / "j" / "job.json"
    job.parent.mkdir(parents=True)
    job.write_text("{}")
    refused = call("store", "status")
    assert refused.code == 2 and "QUORUM_STORE is not" in refused.err
    settings.STORE = address
    assert run("status")["files"] == 0
    assert run("publish")["published"] == 5 and run("publish")["published"] == 0
    found = run("status")
    assert (found["files"], found["here"]) == (5, 5)
    assert run("clean")["freed"] == found["bytes"] and run("status")["here"] == 0
    assert job.exists()
    b = turn_to("b")
    assert (Path(made.folder) / "qrels.txt").exists() is False
    assert len(pages.training_sets(birds)) == 1
    (b / "exports" / "mine").mkdir()
    turn_to("a")
    delete_collection(birds)
    turn_to("b")
    assert (b / "exports" / "birds").exists()
    assert call("store", "clean").code == 0
    assert not (b / "exports" / "birds").exists() and (b / "exports" / "mine").exists()


def test_a_full_disk_ends_the_publishing_of_a_training_only_as_long_as_it_is_full(turn_to: Turn, monkeypatch) -> None:
    folder = JobFolder(turn_to("a") / "jobs" / "birds" / "1")
    folder.path.mkdir(parents=True)
    folder.log.write_text("step 1\n")
    tries: list[Path] = []

    def publish(path: Path, **_options: Any) -> None:
        tries.append(path)
        # Of what is copied before it is sent.
        if len(tries) == 2:
            raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(shared_folder, "publish", publish)
    monkeypatch.setattr(shared_folder, "PUBLISH_S", 0.01)
    with FolderPublisher(Lease(Job(pk=1)), folder):
        until(lambda: len(tries) >= 4)
