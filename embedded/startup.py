"""Steps before a process uses the services: register as a user, start the keeper, check the server."""

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
# Major versions (docs/adr/0002). NEWEST is that of the embedded server, whose pg_dump cannot read newer ones.
OLDEST, NEWEST = 15, 18

_users_lock: int | None = None
_began = 0.0  # When this process began to wait; an earlier failure of a keeper is ignored.


def ensure_services(var: Path) -> None:
    """Keep the embedded services running until this process ends; return when both answer."""
    if addresses.are_embedded():
        begin_services(var)
        wait_for_services(var)


def begin_services(var: Path) -> None:
    """Register this process as a user of the services, and start a keeper unless one is running."""
    global _users_lock, _began
    if not addresses.are_embedded():
        return
    addresses.make_folder(var)
    if _users_lock is None:
        # It stays open until the process ends, and the kernel then releases it in any case.
        _users_lock = locks.open_lock(var / "users.lock")
        fcntl.flock(_users_lock, fcntl.LOCK_SH)
        # The time shows the keeper that a user came and went between two of its checks.
        os.utime(var / "users.lock")
    _began, is_first = time.time(), is_first_start(var)
    if start_keeper(var) and is_first:
        say("Preparing the database (first start): files of PostgreSQL ...")


def is_first_start(var: Path) -> bool:
    """Return whether this instance has no embedded database yet."""
    return addresses.are_embedded() and not (var / "postgres" / "data").exists()


def wait_for_services(var: Path) -> None:
    """Start a keeper unless one is running, and wait until both services are announced and answer."""
    end = time.monotonic() + PATIENCE
    sockets = addresses.run_folder(var)
    while time.monotonic() < end:
        with contextlib.suppress(FileNotFoundError):  # The reason why a keeper has failed since then.
            if (failure := var / "keeper.error").stat().st_mtime >= _began:
                refuse(failure.read_text(), 1)
        if (
            not start_keeper(var)
            and (var / "services.json").exists()
            and postgres_answers(sockets / addresses.POSTGRES_SOCKET)
            and redis_answers(sockets / addresses.REDIS_SOCKET)
        ):
            return
        time.sleep(0.05)
    refuse(f"PostgreSQL and Redis of {var} did not start in {PATIENCE:.0f} s. See {var / 'logs'}.", 1)


def start_keeper(var: Path) -> bool:
    """Start a keeper unless one is running; return whether it was started. It inherits our lock without a gap."""
    lock = locks.open_lock(var / "keeper.lock")
    try:
        if not locks.try_exclusive(lock):
            return False
        # A killed keeper may have left its announcement, which must not make dead servers look alive.
        (var / "services.json").unlink(missing_ok=True)
        process = subprocess.run(
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
    if process.returncode:
        refuse(process.stderr or "the keeper of PostgreSQL and Redis did not start", process.returncode)
    return True


def check_server(var: Path) -> None:
    """End the program with 2 if DATABASE_URL's server has an unsupported version, with 1 if it does not answer."""
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
    """Return why a server of this version (180004 for 18.4) is not supported; "" if it is."""
    major = version // 10_000
    if OLDEST <= major <= NEWEST:
        return ""
    return f"The server is PostgreSQL {major}, and this Quorum runs on {OLDEST} to {NEWEST}: use one of those."
