"""Instances of their own for tests of the platform: a VAR, its processes, and ways to look at them from outside."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import migrated

ROOT = Path(__file__).parent.parent
PATIENCE = 240.0
"""Seconds that a test waits for what other processes do: more than a slow machine needs, for it never waits longer."""
HOLD = (
    "import embedded, sys; from config import env; embedded.ensure_services(env.var()); "
    "print('ready', flush=True); sys.stdin.read()"
)


class Instance:
    """A VAR that nobody else uses, and commands on it."""

    def __init__(self, var: Path, **variables: str) -> None:
        self.var = var
        left_out = ("DATABASE_URL", "REDIS_URL", "QUORUM_PREFIX", "QUORUM_LIFE_FD", "QUORUM_DB_POOL")
        self.environment = {name: value for name, value in os.environ.items() if name not in left_out}
        self.environment |= {"QUORUM_VAR": str(var), "QUORUM_LINGER": "1", "QUORUM_DURABLE": "0", **variables}
        self.started: list[subprocess.Popen[str]] = []

    def migrated(self) -> "Instance":
        """Begin with a database whose migrations are applied, as any start but the first finds it; returns itself.

        Applying them takes seconds of CPU: whoever does not test that takes a copy of the ones applied before.
        """
        shutil.copytree(migrated.cluster(), self.var / "postgres")
        return self

    def start(self, *args: str, program: tuple[str, ...] = (sys.executable,)) -> subprocess.Popen[str]:
        """A Python process on this instance, with pipes."""
        child = subprocess.Popen(
            [*program, *args],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(child)
        return child

    def hold(self, **options: Any) -> subprocess.Popen[str]:
        """A process that uses the services until its standard input is closed."""
        child = self.start("-c", HOLD, **options)
        line = child.stdout.readline() if child.stdout else ""
        assert line == "ready\n", child.stderr.read() if child.stderr else ""
        return child

    def manage(self, *args: str, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *args]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=timeout, check=False
        )

    def sql(self, statement: str) -> str:
        """One statement by psql's protocol library, from a process that uses the instance; its first value."""
        code = (
            "import embedded as s, psycopg, sys; from config import env; s.ensure_services(env.var());"
            "from embedded.addresses import database_url;"
            "c = psycopg.connect(database_url(env.var()), autocommit=True).execute(sys.argv[1]);"
            "print(c.fetchone()[0] if c.description else '')"
        )
        child = self.start("-c", code, statement)
        out, err = child.communicate(timeout=PATIENCE)
        assert child.returncode == 0, err
        return out.strip()

    def announced(self) -> dict[str, Any]:
        return dict(json.loads((self.var / "services.json").read_text()))

    def processes(self) -> dict[int, str]:
        """Everything that runs for this VAR, by its environment: {pid: command line}."""
        found = {}
        mark = f"QUORUM_VAR={self.var}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return found

    def nothing_left(self) -> bool:
        return not self.processes()

    def end(self) -> None:
        """Whatever a failed test left behind."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for child in self.started:
            child.wait()
            for pipe in (child.stdin, child.stdout, child.stderr):
                if pipe:
                    pipe.close()


def until(condition: Callable[[], bool], what: str = "", *, seconds: float = PATIENCE) -> float:
    """Wait for it; returns how long it took. Fails the test when it does not come."""
    began = time.monotonic()
    while not condition():
        left = getattr(getattr(condition, "__self__", None), "processes", dict)()
        assert time.monotonic() - began < seconds, f"{what or condition} did not come in {seconds} s; there are {left}"
        time.sleep(0.05)
    return time.monotonic() - began


def leave(child: subprocess.Popen[str]) -> None:
    """Let a holder end by itself."""
    assert child.stdin
    child.stdin.close()
    child.wait(PATIENCE)
