"""The training extra of the demo: its installation while the site runs, and its progress for the training page."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from config import env
from jobs.processes import spawn_child, stop_children

# File in VAR: {state: installing|ready|failed|left-out, done, of (packages), line (for people), seconds}.
STATE = "training-extra.json"

TELL_EVERY_S = 1.0
FILES = ("requirements-training.txt", "requirements-torch.txt")
LINE = re.compile(r"^[A-Za-z0-9][^\\\n]*==[^\\\n]*", re.MULTILINE)


def wanted_packages() -> set[str]:
    """Return the names of the extra's packages that this machine needs, including torch."""
    requirements = [Requirement(line.strip()) for name in FILES for line in LINE.findall((env.ROOT / name).read_text())]
    return {
        canonicalize_name(requirement.name)
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate()
    }


def installed_packages() -> set[str]:
    importlib.invalidate_caches()
    return {
        canonicalize_name(distribution.name) for distribution in importlib.metadata.distributions() if distribution.name
    }


class Extra:
    """The installation of the training extra, which the loop that watches the site's processes checks."""

    def __init__(self, var: Path, ready: Callable[[], None]) -> None:
        self.var, self.ready = var, ready
        self.log = var / "logs" / "training-extra.log"
        self.process: subprocess.Popen[str] | None = None
        self.begun = self.told = 0.0

    def leave_out(self) -> None:
        self.tell("left-out", "left out (TRAINING=0): run make install-training, then start again")

    def start(self) -> None:
        self.begun = time.monotonic()
        self.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.log.open("w") as log:
            args: list[str | Path] = ["sh", env.ROOT / "config" / "install.sh", "training"]
            # Install into the packages of this Python.
            virtual_environment = {"VENV": sys.prefix} if sys.prefix != sys.base_prefix else {}
            self.process = spawn_child(
                args, {**os.environ, **virtual_environment}, cwd=env.ROOT, stdout=log, stderr=log
            )
        self.tell("installing", "installing packages")

    def look(self) -> None:
        """Write the installation's progress; call `ready` once it has succeeded."""
        if self.process is None:
            return
        code = self.process.poll()
        if code is None:
            if time.monotonic() - self.told > TELL_EVERY_S:
                self.tell("installing", "installing packages")
            return
        self.process = None
        if code:
            lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
            last_line = lines[-1].strip()[:300] if lines else "the installer ended without output"
            self.tell("failed", f"{last_line}: make install-training tries again, then start the demo again")
        else:
            self.ready()
            self.tell("ready", "training is set up")

    def stop(self) -> None:
        """End a running installation; the next start continues it."""
        if self.process is not None:
            stop_children([self.process])

    def tell(self, state: str, line: str) -> None:
        """Write the state atomically, since the training page may read it at any moment."""
        self.told = time.monotonic()
        names = wanted_packages()
        document: dict[str, Any] = {
            "state": state,
            "done": len(names & installed_packages()),
            "of": len(names),
            "line": line,
            "seconds": round(self.told - self.begun, 1) if self.begun else 0.0,
        }
        part = self.var / f".{STATE}.part"
        part.write_text(json.dumps(document) + "\n")
        part.replace(self.var / STATE)
