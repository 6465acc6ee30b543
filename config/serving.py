"""The site's processes: granian and workers as supervised children of a command."""

import logging
import os
import resource
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
from config.health import STOPPING_FILE
from config.operating import web_metrics
from corpus.errors import BadOption, QuorumError
from embedded import are_embedded, start_keeper
from jobs import system
from jobs.processes import die_with_parent, spawn_child, stop_children
from jobs.workers import live_workers
from judges.workers.worker_pool import worker_command
from training.jobs import worker_pool

READY_PATIENCE = 60.0
LOOK_S = 0.5
# So many ended children within so many seconds mean a problem that a restart does not solve.
EXITS, EXITS_S = 5, 60.0
BACKLOG = 4096
CONNECTIONS = 8192  # Connections of a web process at the same time, most of them idle.
# Requests of a web process at the same time: nearly all of them wait for a body, or for a reader of the response.
REQUESTS = 2048
# Seconds for children to finish their work: the first after SIGTERM, the second after Ctrl-C.
STOP_S, QUICK_STOP_S = 30.0, 15.0
# Seconds that a request waits for a database connection before it gets the page "come back later".
DATABASE_PATIENCE_S = 5
STDERR = 2
LOG_CONFIG = Path(__file__).parent / "operating" / "granian_logging.json"  # Makes granian's own lines look like ours.

logger = logging.getLogger(__name__)
# The exit code, once a signal has asked this command to end. `look` checks it too, because Python drops an exception
# that a signal handler raises inside a destructor.
_exit_code: int | None = None


class ServingInterrupted(BaseException):
    """Request to end this command with the exit code `code`, which nothing else may catch."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def stop_on_signals() -> None:
    """Raise ServingInterrupted on SIGINT and SIGTERM, and with QUORUM_WITH_PARENT also when the parent ends."""

    def raise_interrupted(number: int, frame: FrameType | None) -> None:
        global _exit_code
        for name in (signal.SIGINT, signal.SIGTERM):  # A second Ctrl-C must not interrupt the shutdown.
            signal.signal(name, signal.SIG_IGN)
        _exit_code = 130 if number == signal.SIGINT else 0
        raise ServingInterrupted(_exit_code)

    signal.signal(signal.SIGINT, raise_interrupted)
    signal.signal(signal.SIGTERM, raise_interrupted)
    if env.flag("QUORUM_WITH_PARENT"):
        die_with_parent(os.getppid(), signal.SIGTERM)


def listen(bind: str, port: int) -> socket.socket:
    """Bind the web server's address; port 0 means a free one. Raises BadOption if it cannot be bound."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    try:
        return socket.create_server((bind, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        raise BadOption("port", f"Cannot listen on {bind} port {port} ({error}): choose another one.") from error


def hand_over(listener: socket.socket) -> socket.socket:
    """Close the socket of `listen`; return another one that reserves the address for granian."""
    address = listener.getsockname()
    listener.close()
    reserved = socket.socket(listener.family)
    if not system.LINUX:  # On other systems, such a socket would take connections away from granian.
        return reserved
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Each of granian's processes binds the address. No connection reaches this socket, because it does not listen.
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(address)
    return reserved


def granian_command(
    application: str, host: str, port: int, *, processes: int, threads: int, interface: str = "wsgi"
) -> list[str]:
    """Return the command that serves a WSGI or ASGI application at an address."""
    options: dict[str, object] = {
        "interface": interface,
        # The limits below apply to this version of the protocol.
        "http": "1",
        "host": host,
        "port": port,
        "workers": processes,
        "blocking-threads": threads,
        "backlog": BACKLOG,
        "backpressure": CONNECTIONS,
        "http1-buffer-size": 65_536,
        # Milliseconds for a header: without a limit, incomplete ones would occupy connections forever (docs/adr/0074).
        "http1-header-read-timeout": 30_000,
        # Shorter than our wait for granian, so that it can still end its processes itself (docs/adr/0097).
        "workers-kill-timeout": int(STOP_S) - 5,
        # A process that died is replaced at once; `look` counts how often granian itself ends.
        "respawn-interval": 0,
        "log-level": "warning",
    }
    arguments = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "granian", *arguments, "--no-ws", "--respawn-failed-workers", application]


def web_command(host: str, port: int, processes: int = 0) -> list[str]:
    """Return the command that serves the site. `processes`: 0 for the number in the settings."""
    command = granian_command(
        "config.wsgi:application", host, port, processes=processes or settings.WEB_PROCESSES, threads=REQUESTS
    )
    command += ["--log-config", str(LOG_CONFIG)]
    if settings.METRICS_PORT:  # Of granian's own exporter.
        command += ["--metrics", "--metrics-address", settings.METRICS_BIND]
        command += ["--metrics-port", str(settings.METRICS_PORT)]
    return command


def web_environment() -> dict[str, str]:
    """Return the environment variables of the web processes."""
    pool = {"QUORUM_DB_POOL": str(settings.WEB_THREADS), "QUORUM_DB_PATIENCE_S": str(DATABASE_PATIENCE_S)}
    return pool | {"QUORUM_LOG": settings.LOG_FORM}


class Children:
    """The processes of a served instance. Their output goes to `log_folder`, or to our standard error."""

    def __init__(self, log_folder: Path | None = None) -> None:
        self.log_folder = log_folder
        self.starters: dict[str, Callable[[], subprocess.Popen[str]]] = {}
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.exits: deque[float] = deque(maxlen=EXITS)  # Times at which children ended.
        self.reserved: list[socket.socket] = []
        self.counts: Path | None = None  # Folder in which the web processes count their requests.

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
        """Serve the site at this socket's address, which stays reserved until the end."""
        self.counts = Path(tempfile.mkdtemp(prefix="quorum-metrics-"))
        environment = web_environment() | {web_metrics.FOLDER: str(self.counts)}
        # Not to our standard output, which contains the JSON line of `serve`.
        self._start("web", web_command(*self._hand_over_listener(listener)), settings=environment, stdout=STDERR)

    def model(self, listener: socket.socket, settings: dict[str, str]) -> None:
        """Serve one model (training/serving) at the address of this socket, which is closed."""
        # A single process has the model in memory, and one thread is enough for ASGI's loop.
        host, port = self._hand_over_listener(listener)
        application = "training.serving.asgi:application"
        command = granian_command(application, host, port, processes=1, threads=1, interface="asgi")
        self._start("model", command, settings=settings, stdout=STDERR)

    def _hand_over_listener(self, listener: socket.socket) -> tuple[str, int]:
        # Raise the limit of open files as far as allowed, since each connection needs one.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most if system.LINUX else min(most, system.OPEN_FILES), most))
        host, port = listener.getsockname()[:2]
        self.reserved.append(hand_over(listener))
        return str(host), int(port)

    def _start(
        self, name: str, args: list[str], settings: dict[str, str] | None = None, stdout: int = subprocess.DEVNULL
    ) -> None:
        environment = {**os.environ, **(settings or {})}

        def start() -> subprocess.Popen[str]:
            if self.log_folder is None:
                return spawn_child(args, environment, cwd=env.ROOT, stdout=stdout, stderr=STDERR)
            self.log_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (self.log_folder / f"{name.replace(' ', '-')}.log").open("a") as log:
                return spawn_child(args, environment, cwd=env.ROOT, stdout=log, stderr=log)

        self.starters[name] = start
        self.running[name] = start()

    @property
    def pids(self) -> list[int]:
        return [os.getpid(), *(child.pid for child in self.running.values())]

    def wait_until(self, ready: Callable[[], bool], subject: str) -> None:
        """Wait until `ready`, and supervise the children meanwhile. Raises QuorumError after READY_PATIENCE."""
        end = time.monotonic() + READY_PATIENCE
        while not ready():
            self.look()
            if time.monotonic() > end:
                raise QuorumError(f"{subject} did not get ready in {READY_PATIENCE:.0f} s{self._where()}")
            time.sleep(0.05)

    def workers_are_ready(self) -> bool:
        """Return whether the judge worker has reported that it is alive."""
        child = self.running.get("judge workers")
        return child is None or any(worker.pid == child.pid for worker in live_workers())

    def look(self) -> None:
        """Restart ended children and a killed keeper. Raises QuorumError if children keep ending."""
        if _exit_code is not None:
            raise ServingInterrupted(_exit_code)
        if not settings.VAR.exists():
            raise QuorumError(f"{settings.VAR} is gone: this instance ends")
        if are_embedded():
            start_keeper(settings.VAR)
        for name, child in self.running.items():
            if child.poll() is None:
                continue
            logger.error("%s ended with %s and is started again", name, child.returncode)
            # Counted over all children, because a problem of the platform ends each of them in turn.
            self.exits.append(time.monotonic())
            if len(self.exits) == EXITS and self.exits[-1] - self.exits[0] < EXITS_S:
                raise QuorumError(f"{name} ends again and again{self._where()}")
            self.running[name] = self.starters[name]()

    def _where(self) -> str:
        return f": see {self.log_folder}" if self.log_folder else ""

    def watch(self, also: Callable[[], None] = lambda: None) -> None:
        """Keep the children running and call `also` regularly, until an exception is raised."""
        while True:
            self.look()
            also()
            time.sleep(LOOK_S)

    def announce_shutdown(self) -> None:
        """Answer 503 at /readyz but keep serving for QUORUM_STOP_DELAY_S, until proxies send no more requests."""
        if self.counts is not None and settings.STOP_DELAY_SECONDS:
            (self.counts / STOPPING_FILE).touch()
            time.sleep(settings.STOP_DELAY_SECONDS)

    def stop(self) -> None:
        """End the children, which have time to finish their work: more after SIGTERM than after Ctrl-C."""
        stop_children(self.running.values(), patience=STOP_S if _exit_code == 0 else QUICK_STOP_S)
        for reserved in self.reserved:
            reserved.close()
        if self.counts is not None:
            shutil.rmtree(self.counts, ignore_errors=True)


# Requests to our own address do not use the environment's proxy.
_direct = build_opener(ProxyHandler({}))


def site_answers(address: str) -> bool:
    """Return whether the site reports at /readyz that it can serve pages."""
    try:
        with _direct.open(f"{address}/readyz", timeout=5) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False


def address_of(listener: socket.socket) -> str:
    """Return the site's address for a browser on this machine."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
