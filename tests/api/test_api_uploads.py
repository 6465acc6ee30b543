"""Uploads in parts under access tokens: tus 1.0.0, refusals as problems, and the import of what came whole."""

from base64 import b64encode
from typing import Any

import pytest
from django.test import Client

from annotation.models import Role
from annotation.models.imports import Upload
from api.tokens import make_token
from corpus.models import Collection, Document
from tests.factories import make_collection, make_member, make_query
from tests.imported_files import work_off

pytestmark = pytest.mark.django_db
HERE = "/api/v1/collections/birds/uploads"
PART = "application/offset+octet-stream"


@pytest.fixture(autouse=True)
def var(settings: Any, tmp_path: Any) -> None:
    settings.VAR = tmp_path


class Sender:
    """Somebody with a token."""

    def __init__(self, user: Any, scopes: tuple[str, ...] = ("read", "manage")) -> None:
        token = make_token(user, None, name="n", scopes=list(scopes), days=1)[1]
        self.headers = {"Authorization": f"Bearer {token}", "Tus-Resumable": "1.0.0"}
        self.client = Client()

    def ask(self, method: str, path: str, data: bytes = b"", kind: str = PART, **headers: str) -> Any:
        return self.client.generic(method, path, data, kind, headers={**self.headers, **headers})

    def begin(self, name: str, size: int) -> Any:
        said = f"filename {b64encode(name.encode()).decode()}"
        return self.ask("POST", HERE, **{"Upload-Length": str(size), "Upload-Metadata": said})


@pytest.fixture
def alice() -> Sender:
    return Sender(make_member(make_collection("birds"), "alice", Role.ADMIN).user)


def test_a_file_comes_in_parts_and_is_imported(alice: Sender) -> None:
    data = b'{"_id": "d1", "text": "First."}\n'
    make_query(Collection.objects.get())
    made = alice.begin("corpus.jsonl", len(data))
    assert made.status_code == 201, made.content
    url = made["Location"]
    assert url == f"{HERE}/{Upload.objects.get().pk}" and made["Tus-Resumable"] == "1.0.0"
    assert alice.ask("PATCH", url, data[:9], **{"Upload-Offset": "0"})["Upload-Offset"] == "9"
    said = alice.ask("HEAD", url)
    assert (said.status_code, said["Upload-Offset"], said["Upload-Length"]) == (200, "9", str(len(data)))
    listed = alice.ask("GET", HERE).json()["items"]
    assert [(one["name"], one["size"], one["received"]) for one in listed] == [("corpus.jsonl", len(data), 9)]
    number = listed[0]["number"]
    early = alice.ask("POST", f"{HERE}/import", b'{"uploads": [%d]}' % number, "application/json")
    assert early.status_code == 422 and early.json()["detail"].startswith("corpus.jsonl has not")
    assert alice.ask("PATCH", url, data[9:], **{"Upload-Offset": "9"}).status_code == 204
    begun = alice.ask("POST", f"{HERE}/import", b'{"uploads": [%d]}' % number, "application/json")
    assert begun.status_code == 201, begun.content
    work_off()
    here = f"/api/v1/collections/birds/imports/{begun.json()['number']}"
    assert alice.ask("GET", here).json()["checked"]
    alice.ask("POST", f"{here}/cancel", kind="application/json")
    assert alice.ask("POST", f"{here}/go-on", kind="application/json").status_code == 422, "it was ready, not cancelled"
    alice.ask("POST", f"{here}/start", kind="application/json")
    assert alice.ask("POST", f"{here}/cancel", kind="application/json").json()["state"] == "cancelled"
    assert alice.ask("POST", f"{here}/go-on", kind="application/json").json()["state"] == "waiting"
    work_off()
    assert alice.ask("GET", here).json()["imported"] and Document.objects.get().external_id == "d1"
    assert alice.ask("HEAD", url).status_code == 404, "its file is gone with the import"


def test_refusals_are_problems_with_what_the_protocol_says(alice: Sender) -> None:
    assert alice.ask("POST", HERE).json()["detail"] == "Upload-Length is missing."
    url = alice.begin("x", 10)["Location"]
    alice.ask("PATCH", url, b"123", **{"Upload-Offset": "0"})
    for status, sent in (
        (409, {"Upload-Offset": "0"}),
        (412, {"Upload-Offset": "3", "Tus-Resumable": "0.2.2"}),
        (415, {}),
        (400, {"Upload-Offset": "3", "Upload-Checksum": "crc32 AAAA"}),
        (460, {"Upload-Offset": "3", "Upload-Checksum": f"sha1 {b64encode(bytes(20)).decode()}"}),
    ):
        refused = alice.ask("PATCH", url, b"4567", **sent)
        assert refused.status_code == status and refused["Content-Type"] == "application/problem+json", sent
        assert refused.json()["status"] == status and refused.json()["detail"] and refused["Tus-Resumable"] == "1.0.0"
    assert alice.ask("PATCH", url, b"1", **{"Upload-Offset": "0"})["Upload-Offset"] == "3"
    assert alice.ask("DELETE", url).status_code == 204 and not Upload.objects.exists()
    assert alice.ask("DELETE", url).json()["detail"] == "Upload not found."


def test_an_upload_is_its_owners_alone_and_needs_the_scope_and_the_role(alice: Sender) -> None:
    url = alice.begin("x", 10)["Location"]
    birds = Upload.objects.get().collection
    other = Sender(make_member(birds, "dora", Role.ADMIN).user)
    reader = Sender(Upload.objects.get().owner, ("read",))
    bob = Sender(make_member(birds, "bob").user)
    for who, status in ((other, 404), (reader, 403), (bob, 403)):
        for method in ("HEAD", "PATCH", "DELETE"):
            assert who.ask(method, url, **{"Upload-Offset": "0"}).status_code == status, (method, status)
    assert other.ask("GET", HERE).json()["items"] == []
    taken = other.ask("POST", f"{HERE}/import", b'{"uploads": [%d]}' % Upload.objects.get().pk, "application/json")
    assert taken.status_code == 404


def test_a_part_may_be_as_long_as_a_file_and_no_other_request(alice: Sender, settings: Any) -> None:
    settings.MAX_UPLOAD_BYTES, settings.MAX_FILE_BYTES = 1_100_000, 3_000_000
    url = alice.begin("x", 2_000_000)["Location"]
    assert alice.ask("POST", HERE, bytes(1_200_000)).status_code == 413
    assert alice.ask("PATCH", url, bytes(2_000_000), **{"Upload-Offset": "0"})["Upload-Offset"] == "2000000"
    assert alice.ask("PATCH", url, bytes(3_100_000), **{"Upload-Offset": "0"}).status_code == 413
