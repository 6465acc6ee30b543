"""gunicorn as we run it: connections are shared out between processes, and turns within one (docs/adr/0042)."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.workers.gthread import ThreadWorker

from config import web_worker
from config.threads import Threads
from corpus import turns
from tests.instances import PATIENCE, ROOT, until
from tests.plugin_browser import free_port

Served = Callable[..., "Site"]


class Site:
    """gunicorn with our settings, and the connections to it that a test holds."""

    def __init__(self, settings: str, environment: dict[str, str], ends: ExitStack) -> None:
        self.port, self.ends = free_port(), ends
        args = ["-m", "gunicorn", "-c", settings, "--log-level", "error", "-b", f"127.0.0.1:{self.port}"]
        command = [sys.executable, *args, "tests.wsgi_of_turns:application"]
        server = subprocess.Popen(command, cwd=ROOT, env=environment)
        ends.callback(server.wait)
        ends.callback(server.terminate)
        until(self.answers, "the site")

    def connect(self) -> socket.socket:
        """A connection on which nothing is asked yet."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        self.ends.enter_context(connection)
        return connection

    def ask(self, path: str = "/") -> socket.socket:
        """A connection on which it was asked for."""
        connection = self.connect()
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        return connection

    def answers(self) -> bool:
        """It is there."""
        try:
            return bool(told(self.ask()))
        except OSError:
            return False

    def shared(self, number: int = 32) -> Counter[int]:
        """Connections that are open together, by the process that answers on them."""
        connections = [self.ask() for _ in range(number)]
        found = Counter(told(connection)["pid"] for connection in connections)
        for connection in connections:
            connection.close()
        return found


def told(connection: socket.socket) -> dict[str, Any]:
    """The answer; the connection stays."""
    answer = b""
    while not answer.endswith(b"}"):
        part = connection.recv(4096)
        if not part:
            raise ConnectionError(answer)
        answer += part
    return dict(json.loads(answer.split(b"\r\n\r\n", 1)[1]))


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Answers that wait come when it exists."""
    return tmp_path / "gate"


@pytest.fixture
def served(gate: Path) -> Iterator[Served]:
    """Starts a site of so many processes; all ends with the test."""
    with ExitStack() as ends:

        def start(processes: int, settings: str = "config/gunicorn.py") -> Site:
            given = {"QUORUM_TEST_GATE": str(gate), "QUORUM_WEB_PROCESSES": str(processes)}
            site = Site(settings, {**os.environ, **given}, ends)
            ends.callback(gate.touch)
            return site

        yield start


def test_connections_are_shared_out_between_the_processes_also_after_one_has_died(served: Served) -> None:
    site = served(2)
    until(lambda: len(site.shared()) == 2, "two processes")
    first = site.shared()
    assert min(first.values()) >= 10, first
    os.kill(min(first), signal.SIGKILL)
    until(lambda: len(site.shared()) == 2, "a process in its place")
    then = site.shared()
    assert min(then.values()) >= 10 and min(first) not in then, then


def test_who_holds_more_takes_a_connection_only_if_nobody_else_did(monkeypatch: pytest.MonkeyPatch) -> None:
    now, taken, listener = [0.0], list[float](), socket.socket()
    monkeypatch.setattr(web_worker, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(web_worker, "_held", [3, 2])
    monkeypatch.setattr(ThreadWorker, "accept", lambda worker, listener: taken.append(now[0]))
    worker = web_worker.Worker.__new__(web_worker.Worker)
    worker.worker_connections, worker.nr_conns, worker.place = 100, 3, 0

    def comes(at: float) -> list[float]:
        now[0] = at
        worker.accept(listener)
        return taken

    assert comes(1.0) == [] and worker.worker_connections == 0, "it is left to the other"
    assert comes(1.02) == [1.02] and worker.worker_connections == 100, "which did not take it"
    assert comes(1.03) == [1.02], "the next is left again"
    assert comes(9.0) == [1.02], "the other took that one, and this is another"
    web_worker._held[1] = 3
    assert comes(20.0) == [1.02, 20.0], "nobody holds less"
    listener.close()


def test_whoever_asks_for_nothing_holds_no_thread(served: Served) -> None:
    site = served(1)
    for _ in range(20):
        site.connect()
    assert told(site.ask())["threads"] <= 2


def test_long_requests_let_others_begin(served: Served, gate: Path) -> None:
    site = served(1)
    long = [site.ask("/holds") for _ in range(6)]
    assert told(site.ask())["threads"] <= 8
    gate.touch()
    assert len([told(connection) for connection in long]) == 6


def test_a_request_that_only_waits_gives_its_turn_up(served: Served, gate: Path) -> None:
    site = served(1, "tests/gunicorn_patient.py")
    waiting = [site.ask("/gives-up") for _ in range(4)]
    assert told(site.ask())["threads"] <= 6
    working = [site.ask("/holds") for _ in range(2)]
    third = site.ask()
    third.settimeout(1)
    with pytest.raises(TimeoutError):  # two at once are worked on, and no more
        third.recv(1)
    gate.touch()
    third.settimeout(PATIENCE)
    assert told(third)["threads"] <= 8 and len([told(connection) for connection in waiting + working]) == 6


def test_as_many_processes_as_processors_have_one_each(served: Served) -> None:
    processors = sorted(os.sched_getaffinity(0))
    several = served(len(processors))
    where = {}

    def all_seen() -> bool:
        connections = [several.ask() for _ in range(8 * len(processors))]
        where.update({answer["pid"]: tuple(answer["processors"]) for answer in map(told, connections)})
        return len(where) == len(processors)

    until(all_seen, "an answer of each process")
    assert sorted(where.values()) == [(processor,) for processor in processors]
    more = served(len(processors) + 1)
    until(lambda: len(more.shared()) == len(processors) + 1, "every process")
    assert told(more.ask())["processors"] == processors


def test_outside_a_web_process_a_turn_means_nothing() -> None:
    given: list[int] = []
    turns.give_up()
    turns.begin(lambda: given.append(1))
    turns.give_up()
    assert given == [1]
    turns.begin(lambda: None)


def test_the_thread_that_worked_last_works_next_and_errors_reach_whoever_asks() -> None:
    pool = Threads()
    gate = threading.Event()
    held = pool.submit(gate.wait)
    first = pool.submit(threading.get_ident).result(PATIENCE)
    assert [pool.submit(threading.get_ident).result(PATIENCE) for _ in range(5)] == [first] * 5
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 / 0).result(PATIENCE)
    gate.set()
    assert held.result(PATIENCE)
    last = pool.submit(threading.current_thread).result(PATIENCE)
    pool.shutdown()
    last.join(PATIENCE)
    assert not last.is_alive()
