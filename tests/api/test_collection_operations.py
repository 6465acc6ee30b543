"""Presets, acts on pairs, the audit log, and files that are sent twice: by the API."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation.models import AuditEntry, Role
from annotation.models.imports import FileImport, Upload
from annotation.models.pair_table import BulkAct
from api.tokens import make_token
from benchmark.models import Run
from corpus.models import Collection, Item
from tests.api.conftest import Call
from tests.factories import make_collection, make_member, make_pair

pytestmark = pytest.mark.django_db


def admin(name: str = "c") -> Any:
    return make_member(make_collection(name), "alice", Role.ADMIN).user


def test_a_preset_sets_what_a_study_used(call: Call) -> None:
    alice = admin()
    before = call(alice, "GET", "collections/c/settings").json()
    done = call(alice, "PATCH", "collections/c/settings", {"preset": "dream"})
    assert done.status_code == 200 and done.json()["overlap"] == 3 != before["overlap"], done.content
    call(alice, "PATCH", "collections/c/settings", {"preset": "dream"})
    assert AuditEntry.objects.filter(act="settings.changed").count() == 1
    assert call(alice, "PATCH", "collections/c/settings", {"preset": "mine"}).status_code == 422


def test_acts_on_pairs_are_planned_run_and_undone(call: Call) -> None:
    alice = admin()
    collection = Collection.objects.get()
    bob = make_member(collection, "bob", Role.ADMIN).user
    pairs = [make_pair(collection).pk for _ in range(3)]
    foreign = make_pair(make_collection("d")).pk
    here = "collections/c/pair-acts"
    planned = call(alice, "POST", here, {"kind": "send", "pairs": [*pairs, foreign]})
    assert planned.status_code == 201, planned.content
    assert (planned.json()["pairs"], planned.json()["count"], planned.json()["state"]) == (3, 3, "planned")
    path = f"{here}/{planned.json()['number']}"
    assert call(bob, "GET", path).status_code == 404 and call(bob, "POST", f"{path}/run", {}).status_code == 404
    done = call(alice, "POST", f"{path}/run", {}).json()
    assert (done["state"], done["count"], done["can_undo"]) == ("done", 3, True)
    assert Item.objects.filter(pair__in=pairs, state="open").count() == 3
    twice = call(alice, "POST", f"{path}/run", {})
    assert twice.status_code == 422 and "already been carried" in twice.json()["detail"]
    assert Item.objects.filter(pair__in=pairs, state="open").count() == 3
    assert call(bob, "POST", f"{path}/undo").json()["state"] == "undone"
    assert not Item.objects.filter(state="open").exists()
    export = call(alice, "POST", here, {"kind": "export", "pairs": pairs}).json()
    assert export["options"] == {"csv": "CSV", "jsonl": "JSON lines"}
    path = f"{here}/{export['number']}"
    assert call(alice, "GET", f"{path}/file").status_code == 422
    assert call(alice, "POST", f"{path}/run", {"option": "xls"}).status_code == 422
    call(alice, "POST", f"{path}/run", {"option": "jsonl"})
    assert len(call(alice, "GET", f"{path}/file").getvalue().splitlines()) == 3
    assert call(alice, "POST", here, {"kind": "send", "pairs": [foreign]}).status_code == 422
    assert call(alice, "POST", here, {"kind": "dance", "pairs": pairs}).status_code == 422
    assert len(call(alice, "GET", here).json()["items"]) == 2
    assert BulkAct.objects.count() == 2


def test_the_audit_log_is_read_by_act_and_person(call: Call) -> None:
    alice = admin()
    call(alice, "PATCH", "collections/c/settings", {"preset": "dream"})
    call(alice, "PATCH", "collections/c/settings", {"budget": 5})
    rows = call(alice, "GET", "collections/c/audit-log").json()["items"]
    assert [(one["act"], one["who"]) for one in rows] == [("settings.changed", "alice"), ("settings.changed", "alice")]
    only = call(alice, "GET", "collections/c/audit-log?act=settings.changed&actor=alice&since=2026-01-01").json()
    assert [one["details"].get("budget") for one in only["items"]] == [None, 5.0]
    assert call(alice, "GET", "collections/c/audit-log?actor=bob").json()["items"] == []
    assert call(alice, "GET", "collections/c/audit-log?act=dance").status_code == 422
    assert call(alice, "GET", "collections/c/audit-log?since=yesterday").status_code == 422


def upload(client: Client, token: str, path: str, key: str, name: str, text: str, **data: str) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
    files = {"files": SimpleUploadedFile(name, text.encode()), **data}
    return client.post(f"/api/v1/collections/c/{path}", files, headers=headers)


@pytest.fixture
def token() -> str:
    return make_token(admin(), None, name="n", scopes=["manage"], days=1)[1]


def test_a_file_that_is_sent_twice_with_one_key_is_one_upload(client, token, settings, tmp_path):
    settings.VAR = tmp_path
    first = ("imports", "one", "corpus.jsonl", '{"_id": "d", "text": "Text."}\n')
    sent, again = (upload(client, token, *first) for _ in range(2))
    assert sent.status_code == 201, sent.content
    assert again.content == sent.content and again["Idempotent-Replayed"] == "true"
    assert Upload.objects.count() == FileImport.objects.count() == 1
    assert len([path for path in (tmp_path / "uploads").rglob("*") if path.is_file()]) == 1
    for name, text in (("corpus.jsonl", first[3].replace("d", "e")), ("other.jsonl", first[3])):
        other = upload(client, token, "imports", "one", name, text)
        assert other.status_code == 422 and "another request" in other.json()["detail"]
    assert upload(client, token, "imports", "two", *first[2:]).status_code == 201
    assert FileImport.objects.count() == 2


def test_runs_that_are_sent_twice_with_one_key_are_imported_once(client: Client, token: str) -> None:
    pair = make_pair(Collection.objects.get())
    line = f"{pair.query.external_id} Q0 {pair.document.external_id} 1 2.5 tag\n"
    answers = [upload(client, token, "runs/import", "k", "mine.run", line, skip_unknown="true") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201], answers[0].content
    assert answers[0].json() == answers[1].json() and Run.objects.count() == 1
    other = upload(client, token, "runs/import", "k", "mine.run", line, run="named")
    assert other.status_code == 422 and Run.objects.count() == 1


def test_an_upload_that_cannot_be_read_keeps_no_key(client: Client, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "k"}
    broken = client.generic("POST", "/api/v1/collections/c/imports", b"nothing", "multipart/form-data", headers=headers)
    assert broken.status_code == 400 and broken["Content-Type"] == "application/problem+json"
