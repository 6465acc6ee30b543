"""Presets, acts on pairs, the audit log, files that are sent twice, exports and hole filling: by the API."""

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation.exports.query_splits.lists import keep_split
from annotation.models import AuditEntry, Membership, Role
from annotation.models.imports import FileImport, Upload
from annotation.models.pair_table import BulkAct
from api.tokens import make_token
from benchmark.models import Filling, Qrels, Run
from benchmark.qrels.versions import labels_version
from corpus.models import Collection, Item, Label
from judges.models import Campaign
from tests.api.conftest import Call
from tests.factories import make_collection, make_document, make_member, make_pair, make_query
from tests.judged_books import make_books
from tests.rankings import make_run
from training.models import Job, Model

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


def last_act() -> tuple[str, dict[str, Any]]:
    entry = AuditEntry.objects.order_by("-pk")[0]
    return entry.act, entry.details


TWO = {"runs": ["one", "two"], "depth": 2}
PEOPLE = {**TWO, "policy": "people"}


@pytest.fixture
def books() -> Membership:
    """A collection with two runs over four documents and the admin Alice; the qrels know none of them."""
    collection = make_collection("books")
    for name in "abcd":
        make_document(collection, f"Text of {name}.", external_id=name)
    make_query(collection, "Question?", external_id="q1")
    make_run(collection, "one", {"q1": ["a", "b"]})
    make_run(collection, "two", {"q1": ["b", "c"]})
    return make_member(collection, "alice", Role.ADMIN)


def test_a_hole_filling_from_the_estimate_to_its_version(call: Call, books: Membership) -> None:
    alice, here = books.user, "collections/books/hole-fillings"
    estimate = call(alice, "POST", f"{here}/estimate", PEOPLE).json()
    assert (estimate["pool"], estimate["judged"], estimate["candidates"], estimate["cost"]) == (3, 0, 3, 0.0)
    asked = {**TWO, "policy": "debate", "panel": "offline"}
    assert call(alice, "POST", f"{here}/estimate", asked).json()["calls"] > 0
    assert not Qrels.objects.exists() and not Filling.objects.exists()
    for wrong, field in (({"runs": ["none"]}, "body.runs"), ({"budget": 3}, "body.budget")):
        refused = call(alice, "POST", here, PEOPLE | wrong)
        assert refused.status_code == 422 and refused.json()["errors"][0]["field"] == field, refused.content
    assert "version 7" in call(alice, "POST", here, {**PEOPLE, "qrels": 7}).json()["detail"]
    key = {"Idempotency-Key": "fill"}
    made = call(alice, "POST", here, PEOPLE, **key)
    assert made.status_code == 201, made.content
    filling = made.json()
    assert (filling["policy"], filling["before"], filling["funnel"]["candidates"]) == ("people", 1, 3)
    assert call(alice, "POST", here, PEOPLE, **key).json() == filling and Filling.objects.count() == 1
    assert last_act() == ("filling.started", {"filling": filling["number"], **PEOPLE})
    assert Item.objects.filter(reason="hole", state="open").count() == 3
    path = f"{here}/{filling['number']}"
    none = call(alice, "POST", f"{path}/finish")
    assert none.status_code == 422 and "No pair is" in none.json()["detail"]
    ended = call(alice, "POST", f"{path}/cancel").json()
    assert ended["state"] == "cancelled" and not Item.objects.filter(state="open").exists()
    assert call(alice, "POST", f"{path}/cancel").status_code == 422
    assert [one["number"] for one in call(alice, "GET", here).json()["items"]] == [filling["number"]]


def test_a_hole_filling_that_is_finished_twice_ends_once(call: Call, books: Membership) -> None:
    filling = call(books.user, "POST", "collections/books/hole-fillings", PEOPLE).json()
    Label.objects.create(pair_id=Filling.objects.get().pairs[0], grade=1, origin="people")
    for _ in range(2):
        path = f"collections/books/hole-fillings/{filling['number']}/finish"
        assert call(books.user, "POST", path).json()["state"] == "filled"
    assert AuditEntry.objects.filter(act="filling.ended").count() == 1


def test_judges_fill_holes_in_a_campaign_that_is_paused_by_its_number(call: Call, books: Membership) -> None:
    body = {**TWO, "policy": "debate", "panel": "offline", "max_calls": 50}
    made = call(books.user, "POST", "collections/books/hole-fillings", body).json()
    assert made["campaign"] and made["state"] == "judging"
    paused = call(books.user, "POST", f"collections/books/campaigns/{made['campaign']}/pause").json()
    assert paused["state"] == "paused" and Campaign.objects.get(number=made["campaign"]).state == "paused"


EXPORTS = "collections/books/exports"


@pytest.fixture
def alice(settings: Any, tmp_path: Path) -> Any:
    settings.VAR = tmp_path
    return make_member(make_books(), "alice", Role.ADMIN).user


def test_a_kept_list_is_named_as_a_split(call: Call, alice: Any) -> None:
    keep_split(None, Collection.objects.get(), "fixed", ["q0", "q1"], made_by="alice")
    made = call(alice, "POST", EXPORTS, {"format": "beir", "named_splits": {"test": "fixed"}})
    assert made.status_code == 201 and "qrels/test.tsv" in made.json()["files"]
    refused = call(alice, "POST", EXPORTS, {"format": "beir", "named_splits": {"test": "none"}})
    assert refused.status_code == 422 and "No kept list" in refused.json()["detail"]


def test_near_duplicates_are_as_the_format_has_them_where_nobody_says(call: Call, alice: Any) -> None:
    for form, asked, near in (
        ("mteb", {}, None),
        ("mteb", {"seed": 1}, None),
        ("mteb", {"near_duplicates": 0.9}, 0.9),
        ("rtriever", {"teacher": None}, 0.8),
        ("rtriever", {"near_duplicates": None}, None),
    ):
        made = call(alice, "POST", EXPORTS, {"format": form, **asked}).json()
        assert made["manifest"]["options"]["near"] == near, (form, asked)


def test_aggregates_and_versions_of_the_qrels_are_exported(call: Call, alice: Any) -> None:
    made = call(alice, "POST", EXPORTS, {"format": "csv", "aggregate": "dawid-skene"}).json()
    assert made["manifest"]["aggregate"]["by"] == "dawid-skene"
    file = call(alice, "GET", f"{EXPORTS}/{made['number']}/files/labels.csv")
    assert b"".join(file.streaming_content).startswith(b"query_id,doc_id,grade,origin,posterior\n")
    number = labels_version(Collection.objects.get()).number
    made = call(alice, "POST", EXPORTS, {"format": "mteb", "qrels": number}).json()
    assert made["manifest"]["qrels"]["number"] == number and "qrels/test.jsonl" in made["files"]
    assert call(alice, "POST", EXPORTS, {"format": "mteb", "qrels": 99}).status_code == 422
    assert call(alice, "POST", EXPORTS, {"format": "debates", "aggregate": "majority"}).status_code == 422


def test_a_broken_download_goes_on(call: Call, alice: Any) -> None:
    made = call(alice, "POST", EXPORTS, {"format": "qrels"}).json()
    assert made["state"] == "ready"
    address = f"{EXPORTS}/{made['number']}/files/qrels.txt"
    whole = call(alice, "GET", address)
    content = b"".join(whole.streaming_content)
    rest = call(alice, "GET", address, Range="bytes=100-", **{"If-Range": whole["ETag"]})
    assert rest.status_code == 206 and b"".join(rest.streaming_content) == content[100:]
    assert call(alice, "GET", address, Range="bytes=100000-").status_code == 416
    for name in ("nothing.csv", "../../etc/passwd"):
        assert call(alice, "GET", f"{EXPORTS}/{made['number']}/files/{name}").status_code == 404
    assert call(alice, "GET", address, **{"If-None-Match": whole["ETag"]}).status_code == 304


def test_the_files_of_a_model_are_listed_and_sent_in_parts(call: Call, alice: Any, tmp_path: Path, client: Any) -> None:
    folder = tmp_path / "models" / "books" / "one"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(bytes(range(256)))
    (folder / "reranker.json").write_text("{}")
    (folder / ".hidden").write_text("")
    books = Collection.objects.get()
    job = Job.objects.create(collection=books, folder=str(tmp_path), state=Job.State.FINISHED)
    model = Model.objects.create(collection=books, job=job, name="one", recipe="prism", base="tiny", folder=str(folder))
    address = f"collections/books/models/{model.pk}/files"
    assert call(alice, "GET", address).json() == [
        {"name": "model.safetensors", "bytes": 256},
        {"name": "reranker.json", "bytes": 2},
    ]
    part = call(alice, "GET", f"{address}/model.safetensors", Range="bytes=-6")
    assert part.status_code == 206 and b"".join(part.streaming_content) == bytes(range(250, 256))
    for name in ("none", ".hidden", "../one/reranker.json"):
        assert call(alice, "GET", f"{address}/{name}").status_code == 404
    client.force_login(alice)
    page = client.get(f"/c/books/training/models/{model.pk}/").content.decode()
    assert f"/c/books/training/models/{model.pk}/files/model.safetensors" in page
    assert f"/c/books/training/models/{model.pk}/push/" in page
    sent = client.get(f"/c/books/training/models/{model.pk}/files/model.safetensors", headers={"range": "bytes=0-1"})
    assert (sent.status_code, sent["Content-Range"]) == (206, "bytes 0-1/256")
    assert b"".join(sent.streaming_content) == bytes([0, 1])
    elsewhere = Model.objects.create(
        collection=books, job=Job.objects.create(collection=books, folder="/x"), name="two", recipe="prism",
        base="tiny", folder="/etc",
    )  # fmt: skip
    assert call(alice, "GET", f"collections/books/models/{elsewhere.pk}/files").json() == []
    assert call(alice, "GET", f"collections/books/models/{elsewhere.pk}/files/hostname").status_code == 404
