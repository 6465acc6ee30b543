"""Exports by the API: kept lists, named splits, aggregates, versions of the qrels; ranges of files, models included."""

from pathlib import Path
from typing import Any

import pytest

from annotation.exports.query_splits.lists import keep_split
from annotation.models import Role
from benchmark.qrels.versions import labels_version
from corpus.models import Collection
from tests.api.conftest import Call
from tests.factories import make_member
from tests.judged_books import make_books
from training.models import Job, Model

pytestmark = pytest.mark.django_db
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
