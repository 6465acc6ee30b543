"""One process of a session runs the migrations, while the others import the tests; each of these copies its database.

The process holds a lock on a file beside the session's services until it ends: who needs the database waits for that.
Where it failed, each process runs the migrations itself, and says what is wrong.
"""

import fcntl
import gc
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from config.env import ROOT

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

FILE = "migrated"
"""The lock, and in it the name of the database once it is whole."""


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
    gc.set_threshold(200_000)  # of the states of all models that migrations make, few are garbage at a time
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
