"""gunicorn as we run it: connections are shared out between processes, and turns within one (docs/adr/0042)."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from corpus import turns
from tests.instances import PATIENCE, ROOT, until
from tests.plugin_browser import free_port

Served = Callable[..., int]


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Answers that wait come when it exists."""
    return tmp_path / "gate"


@pytest.fixture
def served(gate: Path) -> Iterator[Served]:
    """Starts gunicorn with our settings on a port of its own; all end with the test."""
    with ExitStack() as ends:

        def start(settings: str = "config/gunicorn.py", **variables: str) -> int:
            port = free_port()
            args = ["-m", "gunicorn", "-c", settings, "--log-level", "error", "-b", f"127.0.0.1:{port}"]
            environment = {**os.environ, "QUORUM_TEST_GATE": str(gate), **variables}
            command = [sys.executable, *args, "tests.wsgi_of_turns:application"]
            server = subprocess.Popen(command, cwd=ROOT, env=environment)
            ends.callback(server.wait)
            ends.callback(server.terminate)
            ends.callback(gate.touch)
            until(lambda: answers(port), "the site")
            return port

        yield start


def answers(port: int) -> bool:
    try:
        return bool(told(ask(port)))
    except OSError:
        return False


def ask(port: int, path: str = "/") -> socket.socket:
    """A connection on which it was asked for."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return connection


def told(connection: socket.socket) -> dict[str, Any]:
    """The answer; the connection stays."""
    answer = b""
    while not answer.endswith(b"}"):
        part = connection.recv(4096)
        if not part:
            raise ConnectionError(answer)
        answer += part
    return dict(json.loads(answer.split(b"\r\n\r\n", 1)[1]))


def shared(port: int, number: int = 32) -> Counter[int]:
    """Connections that are open together, by the process that answers on them."""
    connections = [ask(port) for _ in range(number)]
    found = Counter(told(connection)["pid"] for connection in connections)
    for connection in connections:
        connection.close()
    return found


def test_connections_are_shared_out_between_the_processes_also_after_one_has_died(served: Served) -> None:
    port = served(QUORUM_WEB_PROCESSES="2")
    until(lambda: len(shared(port)) == 2, "two processes")
    first = shared(port)
    assert min(first.values()) >= 12, first
    os.kill(min(first), signal.SIGKILL)
    until(lambda: len(shared(port)) == 2, "a process in its place")
    then = shared(port)
    assert min(then.values()) >= 12 and min(first) not in then, then


def test_whoever_asks_for_nothing_holds_no_thread(served: Served) -> None:
    port = served(QUORUM_WEB_PROCESSES="1")
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    assert told(ask(port))["threads"] <= 2
    for connection in silent:
        connection.close()


def test_long_requests_let_others_begin(served: Served, gate: Path) -> None:
    port = served(QUORUM_WEB_PROCESSES="1")
    long = [ask(port, "/holds") for _ in range(6)]
    assert told(ask(port))["threads"] == 7
    gate.touch()
    assert len([told(connection) for connection in long]) == 6


def test_a_request_that_only_waits_gives_its_turn_up(served: Served, gate: Path) -> None:
    port = served("tests/gunicorn_patient.py", QUORUM_WEB_PROCESSES="1")
    waiting = [ask(port, "/gives-up") for _ in range(4)]
    assert told(ask(port))["threads"] == 5
    working = [ask(port, "/holds") for _ in range(2)]
    third = ask(port)
    third.settimeout(1)
    with pytest.raises(TimeoutError):  # two at once are worked on, and no more
        third.recv(1)
    gate.touch()
    third.settimeout(PATIENCE)
    assert told(third)["threads"] <= 7 and len([told(connection) for connection in waiting + working]) == 6


def test_as_many_processes_as_processors_have_one_each(served: Served) -> None:
    processors = sorted(os.sched_getaffinity(0))
    several = served(QUORUM_WEB_PROCESSES=str(len(processors)))
    where = {}

    def all_seen() -> bool:
        connections = [ask(several) for _ in range(8 * len(processors))]
        where.update({answer["pid"]: tuple(answer["processors"]) for answer in map(told, connections)})
        return len(where) == len(processors)

    until(all_seen, "an answer of each process")
    assert sorted(where.values()) == [(processor,) for processor in processors]
    more = served(QUORUM_WEB_PROCESSES=str(len(processors) + 1))
    assert told(ask(more))["processors"] == processors


def test_outside_a_web_process_a_turn_means_nothing() -> None:
    given: list[int] = []
    turns.give_up()
    turns.begin(lambda: given.append(1))
    turns.give_up()
    assert given == [1]
    turns.begin(lambda: None)
