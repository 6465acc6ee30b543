"""`serve` and `demo`: their processes start together, end together, and leave nothing behind however they end."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from io import StringIO
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from config import demo, serving
from config.management.commands.demo import Command as DemoCommand
from corpus.errors import QuorumError
from corpus.models import Collection
from tests.instances import PATIENCE, ROOT, Instance, until
from tests.speed import slowness
from training.jobs import worker_pool


def serve(instance: Instance, *options: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """The command and the line that it printed when it was ready."""
    child = instance.start("manage.py", "serve", "--port", "0", *options)
    line = child.stdout.readline() if child.stdout else ""
    assert line, child.stderr.read() if child.stderr else ""
    return child, json.loads(line)


def status_of(address: str, **headers: str) -> int:
    try:
        with urlopen(Request(address, headers=headers), timeout=60) as response:
            return int(response.status)
    except HTTPError as refused:
        with refused:
            return refused.code


def page_as(name: str, address: str) -> int:
    """The status of the sign-in page for a visitor who comes through the proxy under that name."""
    return status_of(f"{address}/accounts/login/", **{"Host": name, "X-Forwarded-Proto": "https"})


def test_a_demo_whose_runs_take_too_long_comes_up_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(self: serving.Children, ready: Callable[[], bool], what: str) -> None:
        raise QuorumError(f"{what} did not get ready in 60 s")

    monkeypatch.setattr(serving.Children, "wait_until", give_up)
    monkeypatch.setattr(demo, "start_runs", lambda collection: [])
    told = StringIO()
    DemoCommand(stderr=told).measure(serving.Children(), Collection(name="birds"))
    assert told.getvalue().endswith("the runs did not get ready in 60 s\n") and told.getvalue().count("\n") == 1


@pytest.mark.slow
def test_serve_says_when_it_is_ready_and_ctrl_c_ends_all_of_it(make_instance: Callable[..., Instance]):
    instance = make_instance()
    child, ready = serve(instance)
    # Each web process has loaded what its first page needs before it listens.
    for _ in range(8):
        began = time.monotonic()
        assert status_of(f"{ready['url']}/accounts/login/") == 200
        assert time.monotonic() - began < 0.3 * slowness()
    assert status_of(f"{ready['url']}/healthz") == 200
    # This process, the site, a judge worker, and a trainer where the extra is installed.
    trainers = int(worker_pool.is_training_installed())
    assert len(ready["pids"]) == 3 + trainers and child.pid in ready["pids"]
    token = (instance.var / "first-owner-token").read_text().strip()
    os.kill(child.pid, signal.SIGINT)
    assert child.wait(PATIENCE) == 130
    assert child.stderr
    lines = re.sub(r" \.\.\.$", "", child.stderr.read(), flags=re.M).splitlines()
    # On a busy machine a web process may still load the site, and then does not hear the signal.
    assert [line for line in lines if "refused to gracefully stop" not in line] == [
        "Preparing the database (first start): files of PostgreSQL",
        "Preparing static files",
        f"Starting the site and its workers (1 for judging, {trainers} for training)",
        "Preparing the database: its tables (up to two minutes on a busy machine)",
        f"The site is at {ready['url']}. Ctrl-C ends it.",
        f"It has no account yet: open the address and enter this one-time token: {token}",
        "Stopping; unfinished work continues at the next start.",
    ]
    until(instance.nothing_left, "the end of all processes")


PRODUCTION = {"QUORUM_PRODUCTION": "1", "ALLOWED_HOSTS": "quorum.example"}


@pytest.mark.slow
def test_serve_in_production_gets_ready_under_a_name_that_is_not_this_machines(make_instance: Callable[..., Instance]):
    instance = make_instance(**PRODUCTION, http_proxy="http://127.0.0.1:9").migrated()
    _, ready = serve(instance, "--judge-workers", "0")
    assert page_as("quorum.example", ready["url"]) == 200
    assert page_as("127.0.0.1", ready["url"]) == 400
    done = instance.manage("serve", "--port", ready["url"].rpartition(":")[2])  # It is busy.
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "Cannot listen" in done.stderr


@pytest.mark.weekly
def test_serve_in_production_goes_on_past_its_first_minute(make_instance: Callable[..., Instance]):
    instance = make_instance(**PRODUCTION).migrated()
    began = time.monotonic()
    child, ready = serve(instance)
    pids = set(ready["pids"])
    while time.monotonic() < began + serving.READY_PATIENCE + 15:
        assert child.poll() is None and pids <= set(instance.processes())
        assert status_of(f"{ready['url']}/readyz") == 200 and page_as("quorum.example", ready["url"]) == 200
        time.sleep(5)


@pytest.mark.slow
def test_serve_restarts_what_somebody_killed(make_instance: Callable[..., Instance]):
    instance = make_instance().migrated()
    _, ready = serve(instance, "--judge-workers", "0")
    web = next(pid for pid, line in instance.processes().items() if "granian" in line and pid in ready["pids"])
    os.kill(web, signal.SIGKILL)
    os.kill(instance.announced()["pid"], signal.SIGKILL)

    def well() -> bool:
        try:
            return status_of(f"{ready['url']}/healthz") == 200
        except OSError:
            return False

    until(lambda: web not in instance.processes() and well(), "the site")


@pytest.mark.weekly
@pytest.mark.parametrize("at_once", [False, True])
def test_with_the_real_linger_no_process_is_left_after_30_seconds(make_instance, at_once: bool):
    instance = make_instance(QUORUM_LINGER="", QUORUM_DURABLE="").migrated()
    child, _ = serve(instance)
    instance.sql("CREATE TABLE kept AS SELECT 7 AS n")
    for pid in instance.processes() if at_once else [child.pid]:
        os.kill(pid, signal.SIGKILL)
    child.wait()
    assert until(instance.nothing_left, "all processes' end") < 30 * slowness()
    assert instance.sql("SELECT n FROM kept") == "7"


def answers_of(instance: Instance) -> dict[str, Any]:
    """What the demo's evaluation of answers says; the command joins it."""
    judge = "offline-rewriter"
    asked = ("--systems", ",".join(demo.RUN_RECIPES), "--generator", judge, "--judge", judge, "--json")
    found: dict[str, Any] = json.loads(instance.manage("rag", "python-reference", *asked).stdout)
    return found


SEARCHED = ("web_search", "offline-web-search", "--judge", "offline-web-search", "--json")
WRITTEN = "SELECT count(*) FROM corpus_query WHERE metadata ->> 'asked_of' IS NOT NULL"


@pytest.mark.slow
def test_the_demo_brings_up_the_site_and_a_second_one_goes_on(make_instance: Callable[..., Instance]):
    instance = make_instance().migrated()
    accounts = []
    for number in range(2):
        child = instance.start("manage.py", "demo", "--port", "0", "--json")
        document = json.loads(child.stdout.readline() if child.stdout else "")
        assert status_of(f"{document['url']}/healthz") == 200
        accounts.append(document["accounts"])
        if number == 0:
            status = json.loads(instance.manage("status", "python-reference", "--json").stdout)
            assert status["state"] == "finished" and status["pairs"] > 300 and status["escalated"] >= 10
            ended = ("pending", "running", "labelled", "escalated", "failed")
            assert status["pairs"] == sum(status[key] for key in ended)
            until(lambda: answers_of(instance)["state"] == "ready", "the answers")
            shown = answers_of(instance)
            assert (shown["done"], shown["queries"], shown["complete"]) == (48 * len(demo.RUN_RECIPES), 48, True)
            assert {cell["generator"] for cell in shown["cells"]} == {"offline-rewriter"}
            until(lambda: instance.sql(WRITTEN) == "5", "the queries written from documents")
            told = json.loads(instance.manage(*SEARCHED).stdout)
            # Asked again, it takes the queries written meanwhile along: 8 of the demo, and 5 made of its documents.
            assert (told["state"], told["answered"]) == ("ready", 13) and told["results"] > 13
        child.kill()  # the top process alone
        child.wait()
        until(instance.nothing_left, "the end of all processes")
    assert accounts[0] == accounts[1]
    assert json.loads(instance.manage("status", "python-reference", "--json").stdout) == status
    assert (instance.var / "demo" / "accounts.json").stat().st_mode & 0o777 == 0o600


def test_an_end_whose_exception_was_lost_is_asked_for_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serving, "_exit_code", 130)
    with pytest.raises(serving.ServingInterrupted) as stopped:
        serving.Children().watch()
    assert stopped.value.code == 130


@pytest.mark.slow
def test_make_demo_ends_with_make(make_instance: Callable[..., Instance]):
    instance = make_instance().migrated()
    if not (ROOT / ".venv" / ".base").exists():
        pytest.skip("set up by hand, not by make install")
    child = instance.start("demo", "PORT=0", program=("make", "-s"))
    while "The site is at" not in (line := child.stdout.readline() if child.stdout else ""):
        assert line or child.poll() is None, "make demo ended early"
    address = re.search(r"http://\S+", line)
    assert address and status_of(f"{address.group()}/healthz") == 200
    child.kill()
    # An orderly end: workers have ten seconds for what they do, then the services linger and shut down.
    until(instance.nothing_left, "the end of all processes")


@pytest.mark.slow
def test_an_external_database_without_its_tables_says_run_migrate(make_instance: Callable[..., Instance]):
    instance = make_instance().migrated()
    holder = instance.hold()
    instance.sql("CREATE DATABASE empty")
    announced = instance.announced()
    database = announced["database"].replace("/quorum?", "/empty?")
    external = make_instance(DATABASE_URL=database, REDIS_URL=announced["redis"])
    done = external.manage("status", "books")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "run manage.py migrate" in done.stderr
    assert external.manage("migrate", "-v0").returncode == 0
    assert "no collection" in external.manage("status", "books").stderr
    assert not (external.var / "keeper.lock").exists()
    assert holder.poll() is None


def test_settings_open_no_more_connections_than_postgresql_allows_and_an_exporter_where_asked_for(settings: Any):
    settings.WEB_PROCESSES, settings.WEB_THREADS = 12, 8
    with pytest.raises(SystemCheckError, match=r"quorum\.E001"):
        call_command("check")
    assert "--metrics" not in serving.web_command("127.0.0.1", 8000)
    settings.METRICS_PORT, settings.METRICS_BIND = 9101, "10.0.0.1"
    command = serving.web_command("127.0.0.1", 8000)
    assert command[-5:] == ["--metrics", "--metrics-address", "10.0.0.1", "--metrics-port", "9101"]
