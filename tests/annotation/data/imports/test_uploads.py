"""Uploads in parts (tus 1.0.0): what has come stays, what does not go on is refused, what is old goes."""

import fcntl
import shutil
from base64 import b64encode
from collections import namedtuple
from datetime import datetime, timedelta
from hashlib import sha1
from io import BytesIO
from unittest.mock import Mock

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import UnreadablePostError
from django.test import Client
from django.utils import timezone
from django.utils.http import parse_http_date

from annotation.data.imports import files, uploads
from annotation.data.imports.importing import begin_import
from annotation.models import Role
from annotation.models.imports import FileImport, Upload
from corpus.collections.removal import delete_collection
from corpus.errors import BadInput
from tests.factories import client_of, make_member, make_user
from tests.imported_files import work_off

pytestmark = pytest.mark.django_db
CONTENT = b'{"_id": "d1", "text": "First."}\n' * 9


@pytest.fixture
def folder(var):
    return var / "uploads" / "birds"


def create(client: Client, size: int, name: str = "corpus.jsonl", **headers: str):
    said = f"filename {b64encode(name.encode()).decode()},modified MTc="
    headers = {"Upload-Length": str(size), "Upload-Metadata": said, "Tus-Resumable": "1.0.0"} | headers
    return client.generic("POST", "/c/birds/import/uploads/", headers=headers)


def patch(
    client: Client, url: str, offset: object, data: bytes, kind: str = "application/offset+octet-stream", **headers: str
):
    headers = {"Upload-Offset": str(offset), "Tus-Resumable": "1.0.0"} | headers
    return client.generic("PATCH", url, data, kind, headers=headers)


def checksum(data: bytes, algorithm: str = "sha1") -> dict[str, str]:
    return {"Upload-Checksum": f"{algorithm} {b64encode(sha1(data).digest()).decode()}"}


def test_a_file_comes_in_parts_and_goes_on_where_it_broke_off(charlie, folder):
    made = create(charlie, len(CONTENT))
    assert made.status_code == 201 and made["Tus-Resumable"] == "1.0.0"
    url = made["Location"]
    assert patch(charlie, url, 0, CONTENT[:100])["Upload-Offset"] == "100"
    said = charlie.head(url)
    assert (said["Upload-Offset"], said["Upload-Length"]) == ("100", str(len(CONTENT)))
    assert said["Cache-Control"] == "no-store"
    again = patch(charlie, url, 0, CONTENT[:100])
    assert (again.status_code, again["Upload-Offset"]) == (409, "100"), "the same part twice is not added twice"
    done = patch(charlie, url, 100, CONTENT[100:] + b"more than was said")
    assert (done.status_code, done["Upload-Offset"]) == (204, str(len(CONTENT)))
    upload = Upload.objects.get()
    assert (upload.name, upload.size, upload.modified) == ("corpus.jsonl", len(CONTENT), "17")
    assert (folder / str(upload.pk)).read_bytes() == CONTENT


def test_the_page_shows_what_has_not_come_whole_and_for_how_long_it_is_kept(charlie):
    def left(answer):
        return parse_http_date(answer["Upload-Expires"]) - datetime.now().timestamp()

    created = create(charlie, 2_000_000)
    url = created["Location"]
    patch(charlie, url, 0, b" " * 1_000_000)
    page = charlie.get("/c/birds/import/").text
    assert f'data-url="{url}"' in page and 'data-size="2000000"' in page and 'data-modified="17"' in page
    refused = charlie.post("/c/birds/import/", {"upload": [Upload.objects.get().pk]})
    assert refused.status_code == 422 and "uploaded completely" in refused.text
    assert not FileImport.objects.exists()
    assert charlie.head(url)["Upload-Offset"] == "1000000", "what has come is kept"
    assert 86_380 < left(created) <= 86_401
    Upload.objects.update(changed_at=timezone.now() - timedelta(hours=23))
    assert left(charlie.head(url)) < 3_601
    assert left(patch(charlie, url, 1_000_000, b"1")) > 86_390
    assert left(charlie.head(url)) > 86_390, "an upload ends a day after its last part"


def test_a_connection_that_breaks_off_leaves_what_has_come_unless_the_part_has_a_checksum(birds, folder):
    upload = uploads.begin_upload(birds, make_user("dora"), "x", 10)
    whole = uploads.Checksum("sha1", sha1(b"1234567890").digest())
    with pytest.raises(SystemExit):
        uploads.add_part(upload, 0, Mock(side_effect=[b"12345", SystemExit]), whole)
    assert uploads.count_received(upload) == 0
    assert [path.name for path in folder.iterdir()] == [str(upload.pk)], "a process that dies leaves nothing of it"
    read = Mock(side_effect=[b"12345", UnreadablePostError])
    assert uploads.add_part(upload, 0, read) == 5 == uploads.count_received(upload)
    large = uploads.begin_upload(birds, upload.owner, "y", 3 * uploads.PART)
    read = Mock(side_effect=BytesIO(bytes(large.size)).read)
    assert uploads.add_part(large, 0, read) == large.size
    assert max(call.args[0] for call in read.call_args_list) == uploads.PART, "it is not held in memory"


def test_a_part_with_a_checksum_is_taken_whole_or_not_at_all(charlie):
    url = create(charlie, 10)["Location"]
    damaged = patch(charlie, url, 0, b"1234x", **checksum(b"12345"))
    assert damaged.status_code == 460 and "send it again" in damaged.content.decode()
    assert charlie.head(url)["Upload-Offset"] == "0"
    assert patch(charlie, url, 0, b"12345", **checksum(b"12345")).status_code == 204
    for wrong in ("md5 rL0Y20zC+Fzt72VPzMSk2A==", "sha1", "sha1 ?", "12345"):
        refused = patch(charlie, url, 5, b"67890", **{"Upload-Checksum": wrong})
        assert refused.status_code == 400 and "sha1, sha256" in refused.content.decode(), wrong
    assert charlie.head(url)["Upload-Offset"] == "5"


def test_the_uploads_of_a_collection_have_a_quota_together_a_number_and_a_disk(charlie, settings, folder, monkeypatch):
    settings.UPLOADS_BYTES = 2_000_000_000
    url = create(charlie, 1_500_000_000)["Location"]
    refused = create(charlie, 600_000_000)
    assert refused.status_code == 422 and "may have 2 GB" in refused.text
    assert Upload.objects.count() == 1 == len(list(folder.iterdir()))
    charlie.delete(url)
    assert create(charlie, 600_000_000).status_code == 201
    with monkeypatch.context() as patched:
        patched.setattr(uploads, "MAX_UPLOADS", 2)
        answers = [create(charlie, 1) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 422] and Upload.objects.count() == 2
    assert b"more than 2 files" in answers[-1].content
    usage = namedtuple("usage", "total used free")
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _path: usage(0, 0, uploads.SPARE + 99))
        answer = create(charlie, 100)
        assert answer.status_code == 422 and b"the server's disk has no room for it" in answer.content
        assert create(charlie, 99).status_code == 201
    Upload.objects.all().delete()
    others = set(folder.iterdir())
    settings.UPLOADS_BYTES = 30
    files = [SimpleUploadedFile(name, CONTENT[:20]) for name in ("first.jsonl", "second.jsonl")]
    refused = charlie.post("/c/birds/import/", {"files": files})
    assert refused.status_code == 422 and "second.jsonl: uploads of" in refused.text
    assert not Upload.objects.exists() and set(folder.iterdir()) == others, "files that do not all fit leave nothing"


def test_an_upload_is_its_owners_alone_needs_the_csrf_token_and_is_deleted_on_the_page(birds, charlie, folder):
    url = create(charlie, 10)["Location"]
    other = client_of(make_member(birds, "dora", Role.ADMIN))
    assert other.head(url).status_code == 404 and patch(other, url, 0, b"1").status_code == 404
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = charlie.cookies
    assert create(strict, 5).status_code == 403 and patch(strict, url, 0, b"1").status_code == 403
    number = str(Upload.objects.get().pk)
    assert f'form="delete-upload" name="number" value="{number}"' in charlie.get("/c/birds/import/").text
    for client, wrong in ((other, number), (charlie, "x"), (charlie, "9" * 30)):
        assert client.post("/c/birds/import/uploads/delete/", {"number": wrong}).status_code == 302
    assert Upload.objects.exists()
    charlie.post("/c/birds/import/uploads/delete/", {"number": number})
    assert not Upload.objects.exists() and not list(folder.iterdir())


def test_two_requests_for_one_file_do_not_mix(charlie):
    url = create(charlie, 10)["Location"]
    with uploads.path_of(Upload.objects.get()).open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert patch(charlie, url, 0, b"1").status_code == 409
    assert patch(charlie, url, 0, b"1").status_code == 204


def test_what_no_upload_can_be_is_refused(charlie):
    for status, header, value in (
        (400, "Upload-Length", ""), (400, "Upload-Length", "-1"), (400, "Upload-Length", "1" * 30),
        (412, "Tus-Resumable", "0.2.2"), (413, "Upload-Length", "20000000001"), (422, "Upload-Length", "0"),
    ):  # fmt: skip
        assert create(charlie, 5, **{header: value}).status_code == status, (header, value)
    assert not Upload.objects.exists()


def test_other_requests_of_the_protocol(charlie):
    url = create(charlie, 10, "../../etc/x\0.csv")["Location"]
    assert Upload.objects.get().name == "x.csv"
    options = charlie.options(url)
    assert (options.status_code, options["Tus-Max-Size"]) == (204, "20000000000")
    assert options["Tus-Extension"] == "creation,termination,expiration,checksum"
    assert options["Tus-Checksum-Algorithm"] == "sha1,sha256"
    assert patch(charlie, url, 0, b"1", "text/plain").status_code == 415
    assert patch(charlie, url, "x", b"1").status_code == 415
    assert charlie.get(url).status_code == 405
    assert charlie.delete(url).status_code == 204 and not Upload.objects.exists()
    assert charlie.head(url).status_code == 404


def test_old_uploads_are_swept_unless_they_are_being_imported(birds, charlie, folder, monkeypatch):
    for _ in range(3):
        create(charlie, 10)
    old, busy, new = Upload.objects.order_by("pk")
    row = FileImport.objects.create(collection=birds, owner=old.owner, dry_run=False)
    Upload.objects.filter(pk=busy.pk).update(file_import=row)
    Upload.objects.exclude(pk=new.pk).update(changed_at=timezone.now() - timedelta(days=1, minutes=1))
    monkeypatch.setattr(uploads, "_swept", -uploads.SWEEP_S)
    uploads.sweep_uploads()
    assert sorted(path.name for path in folder.iterdir()) == sorted([str(busy.pk), str(new.pk)])
    FileImport.objects.update(state="cancelled")
    uploads.sweep_uploads()
    assert Upload.objects.count() == 2, "not again within ten minutes"
    delete_collection(birds)
    assert not folder.exists() and not Upload.objects.exists()


def test_an_upload_that_goes_on_during_a_sweep_is_kept(charlie, monkeypatch):
    numbers = set()
    for _ in range(2):
        create(charlie, 10)
        numbers.add(Upload.objects.latest("pk").pk)
    Upload.objects.update(changed_at=timezone.now() - timedelta(days=2))
    delete = uploads.delete_upload

    def delete_while_the_other_goes_on(upload):
        delete(upload)
        Upload.objects.update(changed_at=timezone.now())

    monkeypatch.setattr(uploads, "delete_upload", delete_while_the_other_goes_on)
    monkeypatch.setattr(uploads, "_swept", -uploads.SWEEP_S)
    uploads.sweep_uploads()
    assert Upload.objects.get().pk in numbers


def test_an_upload_is_of_one_import_alone(birds, charlie):
    patch(charlie, create(charlie, len(CONTENT))["Location"], 0, CONTENT)
    (seen_first,), (seen_second,) = (list(Upload.objects.select_related("collection")) for _ in range(2))
    taken = begin_import(birds, seen_first.owner, [seen_first])
    with pytest.raises(BadInput, match="another import"):
        begin_import(birds, seen_second.owner, [seen_second])
    uploads.delete_complete([seen_second])
    assert list(FileImport.objects.all()) == [taken]
    assert Upload.objects.get().file_import == taken and uploads.count_received(seen_first) == len(CONTENT)


def test_files_are_looked_at_by_a_worker_before_the_transaction_of_their_import(birds, monkeypatch):
    dora = make_user("dora")
    upload = uploads.store_whole(birds, dora, SimpleUploadedFile("corpus.jsonl", CONTENT))
    depths = [len(connection.savepoint_ids)]

    def fetch(one):
        depths.append(len(connection.savepoint_ids))
        return uploads.path_of(one)

    monkeypatch.setattr(files, "fetch_upload", fetch)
    row = begin_import(birds, dora, [upload])
    assert len(depths) == 1 and not row.looked_at, "the web process does not look into files"
    work_off()
    row.refresh_from_db()
    assert row.looked_at and len(depths) > 1 and len(set(depths[:2])) == 1
