"""PostgreSQL servers of a test's own, beside the one that the tests share."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from embedded import identity
from tests.instances import PATIENCE, until

QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}


@contextmanager
def running_postgres(programs: Path, *options: str) -> Iterator[Path]:
    """The folder of the socket of a server that these programs make; it has a database `quorum`."""
    change, owner = identity.choose_identity()
    folder = Path(tempfile.mkdtemp(prefix="quorum-pg-", dir="/tmp"))
    os.chown(folder, owner, -1)

    def start(program: str, *args: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([str(programs / program), *args], preexec_fn=identity.prepare_child(change), **QUIET)

    how = ["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--username=postgres", "--no-sync"]
    assert start("initdb", "-D", f"{folder}/data", *how).wait(PATIENCE) == 0
    server = start("postgres", "-D", f"{folder}/data", "-k", str(folder), "-c", "fsync=off", *options)
    try:
        port = [f"--port={option}" for option in options if option.isdigit()]
        create = ["-h", str(folder), *port, "-U", "postgres", "-c", "CREATE DATABASE quorum"]
        until(lambda: start("psql", *create).wait() == 0)
        yield folder
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
