"""The migrations run once for all sessions of a checkout, until a migration changes.

What they leave is kept below `.pytest_cache`, by a fingerprint of them: a session starts its
PostgreSQL on a copy, and each of its processes copies that database. In the first session, which
finds no copy, one process runs the migrations while the others import the tests; it holds a lock on
a file beside the session's services until it ends: who needs the database waits for that. Where it
failed, each process runs the migrations itself, and says what is wrong.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from config.env import ROOT

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

FILE = "migrated"
"""The lock, and in it the name of the database once it is whole."""

KEPT = ROOT / ".pytest_cache" / "migrated"
"""Folders of PostgreSQL clusters, each named by what its migrations are."""


def kept_cluster() -> Path:
    """Return where the cluster of today's migrations is kept, whether it is there or not."""
    from config.startup import migrations_fingerprint
    from embedded.postgres import MAJOR

    return KEPT / f"{MAJOR}-{migrations_fingerprint()[:16]}"


def cluster() -> Path:
    """Return a folder to copy as VAR/postgres: a stopped cluster with all migrations applied, made where there is none.

    Processes that ask at the same time make one.
    """
    kept = kept_cluster()
    KEPT.mkdir(parents=True, exist_ok=True)
    with KEPT.with_name("migrated.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            for older in KEPT.iterdir():
                shutil.rmtree(older, ignore_errors=True)
            _make_cluster(kept)
    return kept


def _make_cluster(kept: Path) -> None:
    """An instance of its own runs the migrations as a first start does, and ends."""
    folder = Path(tempfile.mkdtemp(prefix="quorum-migrated-", dir="/tmp"))  # short: sockets have short paths
    var = folder / "var"
    left_out = ("DATABASE_URL", "REDIS_URL", "QUORUM_PREFIX", "QUORUM_DB_POOL")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"QUORUM_VAR": str(var), "QUORUM_LINGER": "0", "QUORUM_DURABLE": "0"}
    command = [sys.executable, "manage.py", "shell", "-v0", "-c", "pass"]
    try:
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdin=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while (var / "services.json").exists() or (var / "postgres" / "data" / "postmaster.pid").exists():
            assert time.monotonic() < until, "the services of the migrations did not end in 60 s"
            time.sleep(0.05)
        draft = kept.with_name(f"{kept.name}.new")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(var / "postgres", draft)
        draft.rename(kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def begin(session: Path) -> "subprocess.Popen[bytes]":
    """Start the process, which takes the lock along."""
    with (session / FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _start("migrate", str(lock.fileno()), pass_fds=[lock.fileno()])


def end(process: "subprocess.Popen[bytes]", keep: bool) -> None:
    """The session is over: the process ends, and unless `keep` the database goes, too."""
    process.terminate()
    process.wait()
    if not keep:
        _start("drop").wait()


def _start(*arguments: str, pass_fds: Sequence[int] = ()) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.migrated", *arguments]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"}
    return subprocess.Popen(command, cwd=ROOT, env=environment, pass_fds=pass_fds, **quiet)


def database(session: Path) -> str:
    """The name of the migrated database, once it is whole; "" when there is none."""
    try:
        with (session / FILE).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            return lock.read()
    except FileNotFoundError:
        return ""


def _connection() -> "BaseDatabaseWrapper":
    """Of a Django whose test database has the name that all processes of the session know."""
    import django
    from django.db import connection

    django.setup()
    connection.settings_dict["TEST"]["NAME"] = f"test_{connection.settings_dict['NAME']}_migrated"
    return connection


def migrate(lock: int) -> None:
    """Make the database and write its name down."""
    connection = _connection()
    name = connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    connection.close()  # a database with a connection cannot be copied
    os.write(lock, name.encode())


def drop() -> None:
    """Remove the database from a server that outlives the session."""
    connection = _connection()
    name = connection.settings_dict["TEST"]["NAME"]
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["migrate", lock]:
            migrate(int(lock))
        case ["drop"]:
            drop()
