"""The site's processes: granian and a judge worker as watched children of a command."""

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from django.conf import settings

from config import env
from config.checks import count_connections
from config.health import STOPPING
from config.operating import web_metrics
from corpus.errors import BadOption, QuorumError
from embedded import are_embedded, start_keeper
from jobs import system
from jobs.processes import die_with_parent, spawn_child, stop_children
from jobs.workers import live_workers
from judges.engine.worker_pool import worker_command
from training.jobs import worker_pool

READY_PATIENCE = 60.0
LOOK_S = 0.5
# More deaths of children than this within so many seconds: something is wrong that a restart does not mend.
FALLS, FALLS_S = 5, 60.0
BACKLOG = 4096
CONNECTIONS = 8192  # Connections that a web process holds at once, most of them idle.
# Requests that a web process has begun: nearly all of them wait for a body, or for a reader of their answer.
REQUESTS = 2048
# Seconds that children have for what they have begun: all of it after SIGTERM, less for somebody who pressed Ctrl-C.
STOP_S, QUICK_STOP_S = 30.0, 15.0
# How long a request waits for a database connection before its visitor is told to come back.
DATABASE_PATIENCE_S = 5
STDERR = 2
LOG_CONFIG = Path(__file__).parent / "operating" / "granian_logging.json"  # granian's own lines look like ours.

logger = logging.getLogger(__name__)
# The exit code of an end that was asked for: Python drops what a signal raises inside a destructor, so look asks.
_asked: int | None = None


class ServingInterrupted(BaseException):
    """Request to end this command with the exit code `code`; nothing in between may catch it."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def stop_on_signals() -> None:
    """Let SIGINT, SIGTERM, with QUORUM_WITH_PARENT the parent's end, interrupt."""

    def raise_interrupted(number: int, frame: FrameType | None) -> None:
        global _asked
        for name in (signal.SIGINT, signal.SIGTERM):  # the end is on its way: a second Ctrl-C must not cut it short
            signal.signal(name, signal.SIG_IGN)
        _asked = 130 if number == signal.SIGINT else 0
        raise ServingInterrupted(_asked)

    signal.signal(signal.SIGINT, raise_interrupted)
    signal.signal(signal.SIGTERM, raise_interrupted)
    if env.flag("QUORUM_WITH_PARENT"):
        die_with_parent(os.getppid(), signal.SIGTERM)


def listen(bind: str, port: int) -> socket.socket:
    """Bind the web server's address for this command; port 0: a free one. BadInput."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    try:
        return socket.create_server((bind, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        raise BadOption("port", f"Cannot listen on {bind} port {port} ({error}): choose another one.") from error


def hand_over(listener: socket.socket) -> socket.socket:
    """Close `listen`'s socket; return one that keeps the address for granian."""
    address = listener.getsockname()
    listener.close()
    kept = socket.socket(listener.family)
    if not system.LINUX:  # Elsewhere such a socket would take connections away from those who listen.
        return kept
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Each of those binds the address by itself. No connection reaches this socket, which does not listen.
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    kept.bind(address)
    return kept


def granian_command(
    application: str, host: str, port: int, *, processes: int, threads: int, interface: str = "wsgi"
) -> list[str]:
    """Return the command that serves a WSGI or ASGI application at an address."""
    options: dict[str, object] = {
        "interface": interface,
        # The limits below are for this version of the protocol.
        "http": "1",
        "host": host,
        "port": port,
        "workers": processes,
        "blocking-threads": threads,
        "backlog": BACKLOG,
        "backpressure": CONNECTIONS,
        "http1-buffer-size": 65_536,
        # Milliseconds for a header: without a limit half-sent ones would hold connections for ever (docs/adr/0074).
        "http1-header-read-timeout": 30_000,
        # Less than what we wait for granian itself, so that it still ends its processes by itself (docs/adr/0097).
        "workers-kill-timeout": int(STOP_S) - 5,
        # A process that died is replaced at once; `look` counts granian's own deaths.
        "respawn-interval": 0,
        "log-level": "warning",
    }
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "granian", *given, "--no-ws", "--respawn-failed-workers", application]


def web_command(host: str, port: int, processes: int = 0) -> list[str]:
    """Return the command that serves the site; `processes`: else the settings' number."""
    command = granian_command(
        "config.wsgi:application", host, port, processes=processes or settings.WEB_PROCESSES, threads=REQUESTS
    )
    command += ["--log-config", str(LOG_CONFIG)]
    # granian's own exporter.
    if settings.METRICS_PORT:
        command += ["--metrics", "--metrics-address", settings.METRICS_BIND]
        command += ["--metrics-port", str(settings.METRICS_PORT)]
    return command


def web_environment() -> dict[str, str]:
    """Return the variables that only the site's processes have."""
    pool = {"QUORUM_DB_POOL": str(settings.WEB_THREADS), "QUORUM_DB_PATIENCE_S": str(DATABASE_PATIENCE_S)}
    return pool | {"QUORUM_LOG": settings.LOG_FORM}


class Children:
    """The processes of a served instance. Output goes to `log_folder`, or our stderr."""

    def __init__(self, log_folder: Path | None = None) -> None:
        self.log_folder = log_folder
        self.makers: dict[str, Callable[[], subprocess.Popen[str]]] = {}
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.falls: deque[float] = deque(maxlen=FALLS)
        self.kept: list[socket.socket] = []
        self.counts: Path | None = None  # Where the web's processes count their requests.

    def judge_workers(self, count: int) -> None:
        """Start one Celery worker with `count` children; none for 0."""
        if count_connections(count) > settings.MAX_CONNECTIONS:
            raise BadOption("judge_workers", f"PostgreSQL has not enough connections for {count} workers: take fewer.")
        if count:
            self._start("judge workers", worker_command(count, "serve"))

    def gpu_workers(self, count: int) -> None:
        """Start a Celery worker of queue `gpu` with `count` processes; none for 0."""
        if count:
            self._start("gpu workers", worker_pool.worker_command(count))

    def web(self, listener: socket.socket) -> None:
        """Serve the site at this socket's address, which is kept until all ends."""
        self.counts = Path(tempfile.mkdtemp(prefix="quorum-metrics-"))
        environment = web_environment() | {web_metrics.FOLDER: str(self.counts)}
        # Not to our standard output, which holds the one JSON line of `serve`.
        self._start("web", web_command(*self._hand_over_listener(listener)), settings=environment, stdout=STDERR)

    def model(self, listener: socket.socket, settings: dict[str, str]) -> None:
        """Serve one model (training/serving) at the address of this socket, which is closed."""
        # One process, because it holds the model; of ASGI's loop one thread is enough.
        host, port = self._hand_over_listener(listener)
        application = "training.serving.asgi:application"
        command = granian_command(application, host, port, processes=1, threads=1, interface="asgi")
        self._start("model", command, settings=settings, stdout=STDERR)

    def _hand_over_listener(self, listener: socket.socket) -> tuple[str, int]:
        system.allow_many_files()
        host, port = listener.getsockname()[:2]
        self.kept.append(hand_over(listener))
        return str(host), int(port)

    def _start(
        self, name: str, args: list[str], settings: dict[str, str] | None = None, stdout: int = subprocess.DEVNULL
    ) -> None:
        environment = {**os.environ, **(settings or {})}

        def make() -> subprocess.Popen[str]:
            if self.log_folder is None:
                return spawn_child(args, environment, cwd=env.ROOT, stdout=stdout, stderr=STDERR)
            self.log_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (self.log_folder / f"{name.replace(' ', '-')}.log").open("a") as log:
                return spawn_child(args, environment, cwd=env.ROOT, stdout=log, stderr=log)

        self.makers[name] = make
        self.running[name] = make()

    @property
    def pids(self) -> list[int]:
        return [os.getpid(), *(child.pid for child in self.running.values())]

    def wait_until(self, ready: Callable[[], bool], what: str) -> None:
        """Wait until `ready`, looking after children. QuorumError after READY_PATIENCE."""
        end = time.monotonic() + READY_PATIENCE
        while not ready():
            self.look()
            if time.monotonic() > end:
                raise QuorumError(f"{what} did not get ready in {READY_PATIENCE:.0f} s{self._where()}")
            time.sleep(0.05)

    def workers_are_ready(self) -> bool:
        """Return whether the judge worker has said that it lives."""
        child = self.running.get("judge workers")
        return child is None or any(worker.pid == child.pid for worker in live_workers())

    def look(self) -> None:
        """Restart ended children, and a killed keeper. Raises where they end again."""
        if _asked is not None:
            raise ServingInterrupted(_asked)
        if not settings.VAR.exists():
            raise QuorumError(f"{settings.VAR} is gone: this instance ends")
        if are_embedded():
            start_keeper(settings.VAR)
        for name, child in self.running.items():
            if child.poll() is None:
                continue
            logger.error("%s ended with %s and is started again", name, child.returncode)
            # Of all children together: a fault of the platform lets each of them fall in turn.
            self.falls.append(time.monotonic())
            if len(self.falls) == FALLS and self.falls[-1] - self.falls[0] < FALLS_S:
                raise QuorumError(f"{name} ends again and again{self._where()}")
            self.running[name] = self.makers[name]()

    def _where(self) -> str:
        return f": see {self.log_folder}" if self.log_folder else ""

    def watch(self, also: Callable[[], None] = lambda: None) -> None:
        """Keep children running, and call `also`, until an exception ends it."""
        while True:
            self.look()
            also()
            time.sleep(LOOK_S)

    def announce_shutdown(self) -> None:
        """Answer 503 at /readyz and serve on for QUORUM_STOP_DELAY_S, until proxies send nobody here any more."""
        if self.counts is not None and settings.STOP_DELAY_SECONDS:
            (self.counts / STOPPING).touch()
            time.sleep(settings.STOP_DELAY_SECONDS)

    def stop(self) -> None:
        """End the children: they finish what they have begun, within the patience of how the end was asked for."""
        stop_children(self.running.values(), patience=STOP_S if _asked == 0 else QUICK_STOP_S)
        for kept in self.kept:
            kept.close()
        if self.counts is not None:
            shutil.rmtree(self.counts, ignore_errors=True)


# Our own address is asked without the proxy of the environment.
_direct = build_opener(ProxyHandler({}))


def site_answers(address: str) -> bool:
    """Return whether the site says at /readyz that it can serve pages."""
    try:
        with _direct.open(f"{address}/readyz", timeout=5) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False


def address_of(listener: socket.socket) -> str:
    """Return where a browser on this machine finds the site."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
