"""Steps of a process before it uses the services: take part, start the keeper, check the server."""

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

from embedded import addresses, locks
from embedded.probes import postgres_answers, redis_answers
from embedded.refuse import refuse, say

ROOT = Path(__file__).resolve().parent.parent
# Seconds to wait for the services: a first start takes one or two, recovery after a crash longer.
PATIENCE = 90.0
# Major versions (docs/adr/0002). NEWEST is our own, whose pg_dump makes backups: it reads no newer server.
OLDEST, NEWEST = 15, 18

_users_lock: int | None = None
_began = 0.0  # When this process began to wait: a keeper that gave up before is none of its concern.


def ensure_services(var: Path) -> None:
    """Hold the instance's own services for the life of this process; return when both answer."""
    if addresses.are_embedded():
        begin_services(var)
        wait_for_services(var)


def begin_services(var: Path) -> None:
    """Hold the instance's services, and start a keeper where none lives."""
    global _users_lock, _began
    if not addresses.are_embedded():
        return
    addresses.make_folder(var)
    if _users_lock is None:
        # Kept open on purpose until the process ends: the kernel frees it however that happens.
        _users_lock = locks.open_lock(var / "users.lock")
        fcntl.flock(_users_lock, fcntl.LOCK_SH)
        # The keeper sees by its time that somebody came and went between two of its looks.
        os.utime(var / "users.lock")
    _began, first = time.time(), is_first_start(var)
    if start_keeper(var) and first:
        say("Preparing the database (first start): files of PostgreSQL ...")


def is_first_start(var: Path) -> bool:
    """Return whether this instance has no database of its own yet."""
    return addresses.are_embedded() and not (var / "postgres" / "data").exists()


def wait_for_services(var: Path) -> None:
    """Start a keeper where none lives, and wait until both services answer."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(FileNotFoundError):  # why a keeper gave up since then
            if (failure := var / "keeper.error").stat().st_mtime >= _began:
                refuse(failure.read_text(), 1)
        if not start_keeper(var) and services_answer(var):
            return
        time.sleep(0.05)
    refuse(f"PostgreSQL and Redis of {var} did not start in {PATIENCE:.0f} s. See {var / 'logs'}.", 1)


def services_answer(var: Path) -> bool:
    """Return whether the keeper has announced the services and both take requests."""
    folder = addresses.run_folder(var)
    return (
        (var / "services.json").exists()
        and postgres_answers(folder / addresses.POSTGRES_SOCKET)
        and redis_answers(folder / addresses.REDIS_SOCKET)
    )


def start_keeper(var: Path) -> bool:
    """Start a keeper unless one lives. The lock that says so is handed over to it, so there is no gap between us."""
    lock = locks.open_lock(var / "keeper.lock")
    try:
        if not locks.try_exclusive(lock):
            return False
        # A killed keeper may have left it behind, and nobody must take its servers for living ones.
        (var / "services.json").unlink(missing_ok=True)
        started = subprocess.run(
            [sys.executable, "-m", "embedded.keeper", str(var), str(lock)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            pass_fds=[lock],
            check=False,
        )
    finally:
        os.close(lock)
    if started.returncode:
        refuse(started.stderr or "the keeper of PostgreSQL and Redis did not start", started.returncode)
    return True


def check_server(var: Path) -> None:
    """Exit 2 where DATABASE_URL's server has an unknown version, 1 if silent."""
    if not os.environ.get("DATABASE_URL"):
        return
    import psycopg

    try:
        with psycopg.connect(addresses.database_url(var), connect_timeout=10) as connection:
            version = connection.info.server_version
    except psycopg.OperationalError as error:
        refuse(f"PostgreSQL (DATABASE_URL) does not answer: {' '.join(str(error).split())}", 1)
    if line := unsupported_reason(version):
        refuse(line)


def unsupported_reason(version: int) -> str:
    """Return why a server of this version (180004 is 18.4) is refused; "" when it is not."""
    major = version // 10_000
    if OLDEST <= major <= NEWEST:
        return ""
    return f"The server is PostgreSQL {major}, and this Quorum runs on {OLDEST} to {NEWEST}: use one of those."
