"""Log lines: what each says of its request, task, job and pair, and that none holds a text or a secret."""

import io
import json
import logging
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import signals
from django.db import DataError, connection
from django.test import Client
from django_structlog.celery.receivers import CeleryReceiver
from structlog.contextvars import bound_contextvars, clear_contextvars, get_contextvars

from annotation.models import Role
from config.operating import logs
from jobs import background, leases
from jobs.models import BackgroundJob
from jobs.processes import spawn_child, stop_children
from judges.models import Attempt, Campaign
from judges.workers import worker_pool
from tests.api.conftest import Call, call
from tests.engine_parts import FAST, collection_of, make_panel
from tests.factories import client_of, make_collection, make_member
from tests.instances import ROOT, until
from tests.modelserver.fixtures import KEY, LocalModels

pytestmark = pytest.mark.django_db

__all__ = ["call"]


class Lines:
    """What was logged, as JSON."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.all if line["event"] == event]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    """Everything from INFO on, as a process with QUORUM_LOG=json writes it."""
    found = Lines()
    handler = logging.StreamHandler(found.stream)
    handler.setFormatter(logs.make_formatter("json"))
    logging.getLogger().addHandler(handler)
    with ExitStack() as stack:
        for name in logs.OURS:
            stack.callback(logging.getLogger(name).setLevel, logging.getLogger(name).level)
            logging.getLogger(name).setLevel(logging.INFO)
        yield found
    logging.getLogger().removeHandler(handler)


def raised(error: Exception) -> tuple[Any, Any, Any]:
    """The error as a logger gets it."""
    try:
        raise error
    except Exception as caught:
        return type(caught), caught, caught.__traceback__


def test_a_wrong_form_or_level_stops_the_program_and_libraries_are_never_louder_than_warnings(capsys) -> None:
    for form, level, says in (("xml", "", "QUORUM_LOG='xml' is none of"), ("json", "loud", "QUORUM_LOG_LEVEL='loud'")):
        with pytest.raises(SystemExit, match="2"):
            logs.logging_settings(form, level)
        assert says in capsys.readouterr().err
    for form, level, of_libraries, of_judges in (
        ("json", "debug", "WARNING", "DEBUG"), ("text", "", "WARNING", "WARNING"), ("json", "ERROR", "ERROR", "ERROR"),
    ):  # fmt: skip
        made = logs.logging_settings(form, level)
        assert (made["root"]["level"], made["loggers"]["judges"]["level"]) == (of_libraries, of_judges)


def test_text_is_one_line_with_what_was_bound() -> None:
    record = logging.LogRecord("jobs.x", logging.WARNING, "", 0, "Redis is %s", ("away",), None)
    with bound_contextvars(pair=7):
        line = logs.make_formatter("text").format(record)
    assert all(part in line for part in ("[warning]", "Redis is away", "pair=7", "[jobs.x]"))


def test_a_request_has_one_line_with_who_asked_for_what(lines: Lines) -> None:
    alice = make_member(make_collection("books"), "alice", Role.ADMIN)
    answer = client_of(alice).get("/c/books/?q=secret-words", headers={"X-Request-ID": "proxy-1:a.b"})
    (line,) = lines.of("request_finished")
    assert answer.headers["X-Request-ID"] == line["request_id"] == "proxy-1:a.b"
    assert (line["method"], line["path"], line["status"]) == ("GET", "/c/books/", answer.status_code)
    assert (line["user"], line["collection"]) == (alice.user.pk, "books")
    assert line["milliseconds"] >= 0 and line["level"] == "info" and line["timestamp"].endswith("Z")
    assert "secret-words" not in lines.text
    assert get_contextvars() == {}


def test_an_id_that_is_none_is_replaced(lines: Lines) -> None:
    for number, text in enumerate(("", "has space", "x" * 101, "ünï", "-begins", 'quote"')):
        answer = Client().get("/accounts/login/", headers={"X-Request-ID": text})
        assert answer.headers["X-Request-ID"] != text and len(answer.headers["X-Request-ID"]) == 32
        assert lines.of("request_finished")[number]["request_id"] == answer.headers["X-Request-ID"]


def test_a_request_that_is_refused_early_has_an_id_and_a_line_and_a_probe_has_neither(lines: Lines) -> None:
    assert Client().get("/c/a%00b/").headers["X-Request-ID"] == lines.of("request_finished")[0]["request_id"]
    assert Client().get("/nowhere/").headers["X-Request-ID"] == lines.of("request_finished")[1]["request_id"]
    assert "X-Request-ID" not in Client().get("/healthz").headers and len(lines.of("request_finished")) == 2
    with connection.execute_wrapper(lambda *args: pytest.fail(f"asked: {args[1]}")):
        assert Client().get("/nowhere.txt").status_code == 404


def test_what_opens_a_door_is_in_no_line(lines: Lines, settings: Any) -> None:
    token = "Aa0-token-of-an-invitation-that-holds"
    Client().get(f"/invitations/{token}/")
    settings.SECURE_SSL_REDIRECT = True
    Client().get(f"/invitations/{token}/?next={token}")
    Client().get("/accounts/password/reset/key/1a-set-password-key/")
    paths = [line["path"] for line in lines.of("request_finished")]
    assert paths == ["/invitations/***/", "/invitations/***/", "/accounts/password/reset/key/***-***/"]
    assert token not in lines.text and "set-password-key" not in lines.text


def test_an_errors_values_are_not_quoted_and_only_known_fields_of_a_record_are_written(lines: Lines) -> None:
    message = "value too long"
    error = DataError(f"{message}\nDETAIL: Failing row contains (the text of a document).")
    info = raised(error)
    logging.getLogger("celery.worker").error("Task %s raised unexpected: %r", "x", error, exc_info=info)
    logging.getLogger("jobs.x").warning("it broke", exc_info=info)
    logging.getLogger("jobs.x").warning("it broke: %s", error)
    first, second, third = lines.all
    assert third["event"] == f"it broke: {message}"
    assert message in first["event"] and second["exception"].endswith(f"DataError: {message}")
    assert "in raised" in second["exception"] and "text of a document" not in lines.text
    logging.getLogger("jobs.x").info("done", extra={"state": "ready", "document": "its text", "request": object()})
    line = lines.all[-1]
    assert line["state"] == "ready" and "document" not in line and "request" not in line


def test_a_message_carries_the_id_of_the_request_that_sent_it_and_its_task_says_so() -> None:
    headers: dict[str, Any] = {}
    with bound_contextvars(request_id="r-1", pair=3):
        signals.before_task_publish.send(sender="x", headers=headers, body=())
    task = SimpleNamespace(name="judges.drain", request=SimpleNamespace(**headers))
    with bound_contextvars(pair=4):
        CeleryReceiver().receiver_task_prerun("t-1", task)
        assert get_contextvars() == {"task": "judges.drain", "task_id": "t-1", "request_id": "r-1"}
    clear_contextvars()


def test_a_jobs_lines_name_it_and_so_does_the_request_that_asked_for_it(lines: Lines) -> None:
    with bound_contextvars(request_id="r-2"):
        asked, _ = background.enqueue("tests.nothing", 7)
    job = leases.claim(BackgroundJob, kind="tests.nothing")
    assert job is not None
    clear_contextvars()
    leases.perform(job, lambda lease: logging.getLogger("jobs.x").warning("it works"))
    assert {line["job"] for line in lines.all} == {f"jobs.backgroundjob:{asked.pk}"}
    assert [line["event"] for line in lines.all] == ["job enqueued", "job begins", "it works", "job ends"]
    assert lines.of("job enqueued")[0]["request_id"] == "r-2"


@pytest.mark.slow
def test_every_line_about_a_judged_pair_is_found_by_the_pair_and_by_the_request(
    model_server: LocalModels, instance: dict[str, str], call: Call, tmp_path: Path
) -> None:
    """A campaign that a request started, whose judges answer well, in prose, and with errors."""
    books = collection_of(4)
    make_panel(model_server, votes=("yes", "garbage", "yes", "yes", "no"))
    admin = make_member(books, "alice", Role.ADMIN)
    environment = {**instance, **FAST, "QUORUM_LOG": "json", "QUORUM_LOG_LEVEL": "DEBUG", "QUORUM_LOOPBACK_ONLY": "1"}
    with (tmp_path / "worker.log").open("w") as log:
        command = worker_pool.worker_command(2, "logs")  # Celery greets on standard output; logs are elsewhere.
        child = spawn_child(command, environment, cwd=ROOT, stderr=log, stdout=subprocess.DEVNULL)
        try:
            asked = call(admin.user, "POST", "collections/books/campaigns", {}, **{"X-Request-ID": "by-alice"})
            assert asked.status_code == 200, asked.text
            until(lambda: not Campaign.objects.filter(state="running").exists())
        finally:
            stop_children([child])
    text = (tmp_path / "worker.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert KEY not in text and "mapping number" not in text and "maps hashable" not in text
    campaign = Campaign.objects.get()
    pairs = list(books.pair_set.values_list("pk", flat=True))
    for pair in pairs:
        own = [line for line in lines if line.get("pair") == pair]
        attempts = {line["attempt"] for line in own if line["event"] == "call ended"}
        assert attempts == set(Attempt.objects.filter(pair=pair).values_list("pk", flat=True)) != set()
        assert [line["state"] for line in own if line["event"] == "pair judged"] != []
        names = {(line["collection"], line["campaign"], line.get("request_id")) for line in own}
        assert names == {("books", campaign.number, "by-alice")}
    told = [line for line in lines if line["event"] in ("call ended", "pair judged")]
    assert told and all(line.get("pair") in pairs for line in told)
