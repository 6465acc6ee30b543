"""A private instance of Quorum, used as people use it: by commands, and over HTTP by an admin and by annotators."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "client"))
READY_S = 180
Judge = Callable[[str, str], int]


class StepFailed(Exception):
    """A command of a step failed: its words are the message."""


class Instance:
    """An instance in a folder that nobody else uses. Nothing of it can reach another machine."""

    def __init__(self, folder: Path) -> None:
        left_out = ("DATABASE_URL", "REDIS_URL", "QUORUM_PREFIX", "QUORUM_STORE")
        inherited = {name: value for name, value in os.environ.items() if name not in left_out}
        # The linger saves the start of PostgreSQL between two commands.
        own = {
            "QUORUM_VAR": str(folder),
            "QUORUM_LOOPBACK_ONLY": "1",
            "QUORUM_LINGER": "60",
            "PYTHONWARNINGS": "ignore",
            # As many threads wherever it runs: sums of another number of threads differ in their last digits.
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2"),
        }
        self.environment = {**inherited, **own, "DJANGO_SETTINGS_MODULE": "config.settings"}

    def manage(self, *args: str | Path, codes: Sequence[int] = (0,)) -> Any:
        """Run `manage.py ... --json` and return its document. Raises StepFailed for any other exit code."""
        command = [sys.executable, "manage.py", *map(str, args), "--json"]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode not in codes:
            words = "\n".join(done.stderr.strip().splitlines()[-20:])
            raise StepFailed(f"manage.py {' '.join(command[2:-1])}: exit {done.returncode}\n{words}")
        return json.loads(done.stdout)

    @contextmanager
    def site(self) -> Iterator[str]:
        """Serve the pages, without workers, and yield the address."""
        command = [sys.executable, "manage.py", "serve", "--port", "0", "--judge-workers", "0"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        server = subprocess.Popen(command, cwd=ROOT, env={**self.environment, "QUORUM_WITH_PARENT": "1"}, **pipes)  # type: ignore[call-overload]
        try:
            line = server.stdout.readline()
            if not line.startswith("{"):
                raise StepFailed(f"serve did not start: {server.stderr.read().strip()[-2000:]}")
            yield json.loads(line)["url"].rstrip("/")
        finally:
            server.terminate()
            server.wait(READY_S)
