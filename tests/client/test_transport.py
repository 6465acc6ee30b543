"""The client's requests: sent again where that is safe, with the same key; errors; pages; downloads; waiting."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from quorum_client import Quorum, QuorumError, transport
from quorum_client.records import SettingsOut
from quorum_client.retries import RetryPolicy, read_retry_after

Answer = Callable[[httpx2.Request], httpx2.Response]
SOON = RetryPolicy(first=0.001)
LABEL = {"number": 1, "query": "q", "document": "d", "grade": 1, "origin": "people", "teacher_score": None}
PROBLEM = {"title": "Unprocessable Entity", "status": 422, "detail": "k is wrong", "errors": []}
EXPORT = {"number": 3, "format": "csv", "error": "", "manifest": {}, "created_at": "2026-01-01T00:00:00Z"}


class Site:
    """Answers in turn, and the requests that got them; the last answer is given for ever."""

    def __init__(self, *answers: httpx2.Response | Exception | Answer) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx2.Response) else answer(request)

    def client(self, **options: Any) -> Quorum:
        options = {"retries": SOON, "transport": httpx2.MockTransport(self), **options}
        return Quorum("https://quorum.example/", "quorum_token", **options)


def page(*rows: dict[str, Any], after: int | None = None) -> httpx2.Response:
    return httpx2.Response(200, json={"items": rows, "next": after})


def lost() -> httpx2.ReadError:
    return httpx2.ReadError("connection lost")


def started(campaign: int = 7) -> httpx2.Response:
    return httpx2.Response(200, json={"campaign": campaign, "added": 2, "joined": False})


def test_a_request_says_who_asks_and_what_is_refused_says_why() -> None:
    site = Site(httpx2.Response(422, json={**PROBLEM, "errors": [{"field": "body.k", "problem": "wrong"}]}))
    with pytest.raises(QuorumError, match="k is wrong") as caught, site.client() as quorum:
        quorum.collection("books").reports.make(k=5)
    error, (request,) = caught.value, site.requests
    assert (error.status, error.title, error.errors) == (422, "Unprocessable Entity", (("body.k", "wrong"),))
    assert str(request.url) == "https://quorum.example/api/v1/collections/books/reports"
    assert request.headers["Authorization"] == "Bearer quorum_token" and json.loads(request.content) == {"k": 5}


def test_what_starts_something_is_sent_again_with_the_same_key() -> None:
    for failure in (lost(), httpx2.Response(503), httpx2.Response(500)):
        site = Site(failure, failure, started(), started(8))
        campaigns = site.client().collection("books").campaigns
        assert campaigns.start(policy="human").campaign == 7
        keys = {request.headers["Idempotency-Key"] for request in site.requests}
        assert len(site.requests) == 3 and len(keys) == 1
        assert campaigns.start(policy="human").campaign == 8
        assert site.requests[-1].headers["Idempotency-Key"] not in keys


def test_retry_after_is_waited_for_and_a_server_that_asks_for_too_much_gets_no_further_try() -> None:
    site = Site(httpx2.Response(429, headers={"Retry-After": "0.01"}), page(LABEL))
    assert len(list(site.client().collection("books").pairs())) == 1
    busy = Site(httpx2.Response(429, json={**PROBLEM, "status": 429}, headers={"Retry-After": "3600"}))
    with pytest.raises(QuorumError) as caught:
        busy.client().collection("books").read()
    assert caught.value.status == 429 and len(busy.requests) == 1
    assert read_retry_after(httpx2.Response(503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})) == 0.0
    assert read_retry_after(httpx2.Response(503, headers={"Retry-After": "soon"})) is None


def test_a_site_that_stays_away_is_an_error_and_a_refusal_is_not_tried_again() -> None:
    site = Site(lost())
    with pytest.raises(QuorumError, match="connection lost") as caught:
        site.client().collection("books").read()
    assert caught.value.status is None and len(site.requests) == SOON.attempts
    refusing = Site(httpx2.Response(404, json={**PROBLEM, "status": 404, "detail": "Collection not found."}))
    with pytest.raises(QuorumError, match="Collection not found"):
        refusing.client().collection("books").read()
    assert len(refusing.requests) == 1


def test_uploads_are_sent_again_whole_and_with_the_same_key(tmp_path: Path) -> None:
    (tmp_path / "mine.run").write_text("q Q0 d 1 1 t\n")
    for failure in (lost(), httpx2.ConnectError("refused"), httpx2.Response(503)):
        site = Site(failure)
        with pytest.raises(QuorumError):
            site.client().collection("books").runs.import_files([tmp_path / "mine.run"])
        assert len(site.requests) == SOON.attempts, failure
        assert all(b"q Q0 d 1 1 t" in request.content for request in site.requests)
        assert len({request.headers["Idempotency-Key"] for request in site.requests}) == 1


def test_any_other_request_takes_a_key_unless_its_answer_must_not_be_kept() -> None:
    webhooks = {"url": "https://ice.example/hook", "events": ["export.ready"]}
    site = Site(lost(), httpx2.Response(201, json={"secret": "whsec_x"}))
    books = site.client().collection("books")
    assert books.request("POST", "webhooks", webhooks) == {"secret": "whsec_x"}
    assert len({request.headers["Idempotency-Key"] for request in site.requests}) == 1
    once = Site(lost())
    with pytest.raises(QuorumError):
        once.client().collection("books").request("POST", "webhooks", webhooks, is_repeatable=False)
    (request,) = once.requests
    assert "Idempotency-Key" not in request.headers and json.loads(request.content) == webhooks
    for answer, read in ((httpx2.Response(204), None), (httpx2.Response(200, text="a,b\n"), "a,b\n")):
        assert Site(answer).client().request("GET", "anything", params={"k": 5}) == read


def test_a_file_is_sent_part_by_part_and_goes_on_where_the_site_has_it(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(transport, "PART", 4)
    (tmp_path / "corpus.jsonl").write_text("0123456789")
    imported = {
        "number": 9, "state": "waiting", "checked": False, "imported": False, "files": [], "report": {}, "error": "",
        "done": 0, "total": 0,
    }  # fmt: skip
    site = Site(
        httpx2.Response(201, headers={"Location": "/api/v1/collections/books/uploads/7"}),
        httpx2.Response(204, headers={"Upload-Offset": "4"}),
        lost(),  # its answer is lost, and two bytes of the part came
        httpx2.Response(409, json={**PROBLEM, "status": 409}),
        httpx2.Response(200, headers={"Upload-Offset": "6"}),
        httpx2.Response(204, headers={"Upload-Offset": "10"}),
        httpx2.Response(201, json=imported),
    )
    assert site.client().collection("books").imports.create([tmp_path / "corpus.jsonl"]).number == 9
    sent = [(one.method, one.headers.get("Upload-Offset"), one.content) for one in site.requests]
    assert sent[1:6] == [
        ("PATCH", "0", b"0123"), ("PATCH", "4", b"4567"), ("PATCH", "4", b"4567"), ("HEAD", None, b""),
        ("PATCH", "6", b"6789"),
    ]  # fmt: skip
    assert json.loads(sent[6][2]) == {"uploads": [7]} and site.requests[0].headers["Upload-Length"] == "10"


def test_a_deletion_whose_answer_was_lost_is_done_when_it_is_gone() -> None:
    gone = httpx2.Response(404, json={**PROBLEM, "status": 404})
    site = Site(lost(), gone, lost(), gone)
    books = site.client().collection("books")
    books.runs.delete(5)
    assert books.request("DELETE", "runs/5") is None
    assert [request.method for request in site.requests] == ["DELETE"] * 4
    with pytest.raises(QuorumError):
        Site(gone).client().collection("books").runs.delete(5)


def test_a_change_names_the_state_that_was_read_and_is_not_sent_twice() -> None:
    empty: dict[Any, Any] = {int: 1, str: "", bool: False, dict[str, int]: {}, list[str]: []}
    values = {name: empty.get(field.annotation) for name, field in SettingsOut.model_fields.items()}
    site = Site(httpx2.Response(200, json=values, headers={"ETag": '"one"'}), lost())
    settings = site.client().collection("books").settings
    seen = settings.read()
    assert seen.etag == '"one"'
    with pytest.raises(QuorumError):
        settings.change(overlap=3, if_match=seen)
    assert len(site.requests) == 2 and site.requests[1].headers["If-Match"] == '"one"'
    assert json.loads(site.requests[1].content) == {"overlap": 3}
    with pytest.raises(ValueError, match="if_match"):
        settings.change(overlap=3, if_match=SettingsOut(**seen.model_dump()))


def test_lists_are_read_page_by_page_while_they_are_asked_for() -> None:
    site = Site(page(LABEL, {**LABEL, "number": 2}, after=2), page({**LABEL, "number": 3}))
    rows = site.client().collection("books").pairs()
    assert next(rows).number == 1 and len(site.requests) == 1
    assert [row.number for row in rows] == [2, 3]
    assert [request.url.params["after"] for request in site.requests] == ["0", "2"]
    other = Site(page({"id": 1}, after=1), page({"id": 2})).client().collection("books")
    assert list(other.rows("members")) == [{"id": 1}, {"id": 2}]


def test_an_export_is_waited_for_and_downloaded_whole_or_not_at_all(tmp_path: Path) -> None:
    def export(state: str) -> httpx2.Response:
        return httpx2.Response(200, json={**EXPORT, "state": state, "files": ["labels.csv"]})

    file = httpx2.Response(200, content=b"q,d,1\n")
    site = Site(export("making"), export("making"), export("ready"), export("ready"), httpx2.Response(502), file)
    (path,) = site.client().collection("books").exports.run(format="csv", folder=tmp_path / "out", every=0.001)
    assert path.read_bytes() == b"q,d,1\n" and [one.name for one in path.parent.iterdir()] == ["labels.csv"]
    outside = Site(httpx2.Response(200, json={**EXPORT, "state": "ready", "files": ["../labels.csv"]}))
    with pytest.raises(ValueError, match="outside"):
        outside.client().collection("books").exports.download(3, tmp_path / "out")
    missing = Site(export("ready"), httpx2.Response(404, json={**PROBLEM, "status": 404, "detail": "File not found."}))
    with pytest.raises(QuorumError, match="File not found"):
        missing.client().collection("books").exports.download(3, tmp_path / "other")
    assert list((tmp_path / "other").iterdir()) == []


class BrokenStream(httpx2.SyncByteStream):
    """The first bytes of a file, and then none."""

    def __iter__(self) -> Iterator[bytes]:
        yield b"q,d"
        raise httpx2.ReadError("lost")


@pytest.mark.parametrize(
    ("status", "content"), [(206, b",1\n"), (200, b"other,version\n")], ids=["the rest", "another version"]
)
def test_a_download_that_breaks_off_goes_on_in_the_same_version(status: int, content: bytes, tmp_path: Path) -> None:
    begun = httpx2.Response(200, headers={"ETag": '"one"'}, stream=BrokenStream())
    site = Site(begun, httpx2.Response(503), httpx2.Response(status, content=content, headers={"ETag": '"two"'}))
    exports = site.client().collection("books").exports
    (path,) = exports.download(3, tmp_path / "out", files=["labels.csv"])
    assert path.read_bytes() == (b"q,d" + content if status == 206 else content)
    assert "Range" not in site.requests[0].headers
    for request in site.requests[1:]:
        assert (request.headers["Range"], request.headers["If-Range"]) == ("bytes=3-", '"one"')


def test_waiting_ends_with_the_work_with_an_error_where_it_stops_and_shows_how_far_it_is(capsys):
    def campaign(state: str, because: str | None = None) -> httpx2.Response:
        counts = {"labelled": 1, "escalated": 0, "failed": 0, "pairs": 2}
        return httpx2.Response(200, json={"status": {**counts, "state": state, "paused_because": because}})

    running = campaign("running")
    for stopped, words in (
        (campaign("budget"), "campaign 7: budget"),
        (campaign("paused", "spending"), "campaign 7: spending"),
        (campaign("cancelled"), "campaign 7: cancelled"),
    ):
        with pytest.raises(QuorumError, match=words):
            Site(running, stopped).client().collection("books").campaigns.wait(7, every=0.001)
    with pytest.raises(TimeoutError):
        Site(running).client().collection("books").campaigns.wait(7, every=0.01, timeout=0.03)
    assert capsys.readouterr().err == ""
    Site(campaign("finished")).client().collection("books").campaigns.wait(7, progress=True)
    assert "campaign 7" in capsys.readouterr().err


def test_an_upload_that_does_not_go_on_is_an_error_and_no_endless_loop(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(transport, "PART", 50_000)
    file = tmp_path / "corpus.jsonl"
    file.write_bytes(bytes(100_000))
    begun = httpx2.Response(201, headers={"Location": "/api/v1/collections/books/uploads/7"})
    refusal = httpx2.Response(409, json={**PROBLEM, "status": 409, "detail": "Another request adds to it."})
    nothing_came = httpx2.Response(200, headers={"Upload-Offset": "0"})
    site = Site(begun, *[refusal, nothing_came] * SOON.attempts, httpx2.Response(500))
    with pytest.raises(QuorumError, match="beyond byte 0"):
        site.client().collection("books").imports.create([file])
    assert [one.method for one in site.requests] == ["POST", *["PATCH", "HEAD"] * SOON.attempts]

    def shorten(request: httpx2.Request) -> httpx2.Response:
        file.write_bytes(bytes(50_000))
        return httpx2.Response(204, headers={"Upload-Offset": "50000"})

    shorter = Site(httpx2.Response(201, headers={"Location": "/uploads/7"}), shorten, httpx2.Response(500))
    with pytest.raises(QuorumError, match="became shorter"):
        shorter.client().collection("books").imports.create([file])
    assert len(shorter.requests) == 2


def test_the_environment_says_where_the_site_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUORUM_URL", raising=False)
    monkeypatch.delenv("QUORUM_TOKEN", raising=False)
    with pytest.raises(ValueError, match="QUORUM_URL and QUORUM_TOKEN"):
        Quorum.from_environment()
    monkeypatch.setenv("QUORUM_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("QUORUM_TOKEN", "quorum_x")
    assert str(Quorum.from_environment().transport.http.base_url) == "http://127.0.0.1:1/api/v1/"
