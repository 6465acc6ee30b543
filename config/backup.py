"""Backups: one file with an instance's database as one moment saw it, and the files of VAR that belong to it.

A backup is a tar file: `manifest.json` first (version, applied migrations, rows of every table,
sha256 of every file), then `database.dump` (pg_dump's own format, taken in the snapshot in which
the rows were counted), then `var/...`. `config.restoring` reads it.
"""

import hashlib
import io
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from psycopg.pq import Conninfo

from config.version import VERSION
from corpus.errors import BadInput, QuorumError
from embedded import postgres
from embedded.startup import unsupported_reason
from store.files import files_below, open_store, stored_files
from store.models import StoredFile
from store.nodes import node_id
from store.objects import StoreUnavailable

FORMAT = 1
MANIFEST, DUMP = "manifest.json", "database.dump"
# What of VAR cannot be made again, or was paid for. Indexes, logs, static files and services are
# left out, and base models (VAR/bases): they come from outside.
KEPT = ("secret_key", "audit.jsonl", "demo", "exports", "jobs", "models", "spool", "teachers", "vectors")
BEFORE_RESTORE = "before-restore-*.tar"
NO_HASH = "0" * 64

Say = Callable[[str], None]


def write_backup(path: Path, var: Path, say: Say = lambda line: None) -> dict[str, Any]:
    """Write the instance to a new file, whole or not at all; return the manifest. Raises BadInput where it cannot."""
    if path.exists():
        raise BadInput(f"{path} exists: name a new file")
    # Renamed once it is whole, so that nobody takes a backup that was cut off for one.
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("xb") as file, tempfile.TemporaryDirectory(dir=path.parent, prefix=".backup-") as folder:
            # The file holds secrets: only its owner may read it.
            part.chmod(0o600)
            manifest = _write_archive(file, Path(folder) / DUMP, var, say)
        part.rename(path)
    except StoreUnavailable:
        raise
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return manifest


def instance_id() -> str:
    """Return what tells this instance from others whose VAR has the same path, as in Docker."""
    return hashlib.sha256(settings.SECRET_KEY.encode()).hexdigest()[:16]


def prune_backups(folder: Path, keep: int, pattern: str = "*") -> list[Path]:
    """Remove all but the `keep` newest backups of this instance from the folder; return those removed.

    Copies that `restore` made of what was there before stay, unless the pattern is theirs.
    """
    found = [path for path in folder.glob(pattern) if pattern == BEFORE_RESTORE or not path.match(BEFORE_RESTORE)]
    ours = [path for path in found if path.is_file() and _instance_of(path) == instance_id()]
    older = sorted(ours, key=lambda path: path.stat().st_mtime, reverse=True)[keep:]
    for path in older:
        path.unlink()
    return older


def _instance_of(path: Path) -> str | None:
    """Return the instance that a backup was made of; None for what is no backup or does not say."""
    try:
        with tarfile.open(path, "r:") as tar:
            first = tar.next()
            file = tar.extractfile(first) if first is not None and first.name == MANIFEST else None
            return str(json.loads(file.read())["instance"]) if file is not None else None
    except (tarfile.TarError, EOFError, OSError, ValueError, KeyError, TypeError):
        return None


def _write_archive(file: IO[bytes], dump: Path, var: Path, say: Say) -> dict[str, Any]:
    version = server_version()
    if line := unsupported_reason(version):
        raise BadInput(line)
    say("dumping the database ...")
    rows = _dump_database(dump)
    local = {f"var/{one.relative_to(var)}": one for one in _kept_files(var)}
    files: dict[str, Path | StoredFile] = {DUMP: dump, **local, **_files_of_other_machines(var)}
    say(f"packing {len(files) - 1:,} files ...")
    manifest: dict[str, Any] = {
        "quorum_backup": FORMAT,
        "version": VERSION,
        "instance": instance_id(),
        "var": str(var),
        "postgresql": version // 10_000,
        "migrations": sorted(f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations()),
        "rows": rows,
        "files": dict.fromkeys(files, NO_HASH),
    }
    # The manifest stands first and is known last: its place is kept, for a hash is as long as any other.
    first = tarfile.TarInfo(MANIFEST)
    first.size = len(_manifest_bytes(manifest))
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(first, io.BytesIO(b" " * first.size))
        hashes = {
            name: _add_file(tar, name, one) if isinstance(one, Path) else _add_stored_file(tar, name, one)
            for name, one in files.items()
        }
    manifest["files"] = {name: found for name, found in hashes.items() if found}
    file.seek(len(first.tobuf()))
    file.write(_manifest_bytes(manifest).ljust(first.size))
    return manifest


def _manifest_bytes(manifest: dict[str, Any]) -> bytes:
    return json.dumps(manifest, indent=1, sort_keys=True).encode()


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> str:
    """Pack a file as long as it is now, for others may append to it; return its sha256, or "" when it is gone."""
    try:
        source = path.open("rb")
    except FileNotFoundError:
        return ""
    with source:
        found = os.fstat(source.fileno())
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode, entry.mtime = found.st_size, found.st_mode & 0o777, int(found.st_mtime)
        hashing = HashingReader(source)
        try:
            tar.addfile(entry, hashing)
        except OSError as error:
            if error.errno is None:  # tarfile's own: the file ended early
                raise QuorumError(f"{path} became shorter while it was read: back up again") from error
            raise
        return hashing.digest.hexdigest()


def _add_stored_file(tar: tarfile.TarFile, name: str, row: StoredFile) -> str:
    """Pack a file from the store, no local copy; return its sha256. Raises StoreUnavailable."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = row.content.size, 0o600, int(row.changed_at.timestamp())
    with open_store().open(row.content_id) as source:
        hashing = HashingReader(source)
        tar.addfile(entry, hashing)
    if (found := hashing.digest.hexdigest()) != row.content_id:
        raise StoreUnavailable(f"The store gave other bytes than those of {name}: restore it from an older backup")
    return found


def _files_of_other_machines(var: Path) -> dict[str, StoredFile]:
    """Return stored files that a backup keeps and that are not on this disk, or have changed."""
    found = {}
    for kind in KEPT:
        for row in stored_files(var / kind):
            path = var / row.name
            here = path.is_file() and path.stat().st_size == row.content.size
            # Files of jobs change; all others never do under their name.
            if row.node != node_id() and not (here and kind != "jobs"):
                found[f"var/{row.name}"] = row
    return found


class HashingReader:
    """A file that hashes what is read of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.digest.update(data)
        return data


def _kept_files(var: Path) -> Iterator[Path]:
    """Yield the regular files that a backup keeps, without those being written (names that begin with a dot)."""
    for name in KEPT:
        for path in files_below(var / name):
            if not any(part.startswith(".") for part in path.relative_to(var).parts):
                yield path


def server_version() -> int:
    """Return the version of PostgreSQL: 180004 is 18.4."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0])


def _dump_database(path: Path) -> dict[str, int]:
    """Write pg_dump's output to `path`; return rows of every table, by the same snapshot."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        (snapshot,) = cursor.fetchone()
        # pg_dump reads the snapshot of this transaction, so the counted rows are those of the dump,
        # though people go on working.
        options = ["-Fc", "--no-owner", "--no-privileges", f"--snapshot={snapshot}"]
        with path.open("wb") as file:
            run_postgres_program("pg_dump", *options, stdout=file)
        return _count_rows(cursor)


def _count_rows(cursor: Any) -> dict[str, int]:
    """Return the number of rows of every table in the schema `public`."""
    cursor.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1"
    )
    found = {}
    for (table,) in cursor.fetchall():
        cursor.execute(f'SELECT count(*) FROM "{table}"')
        (found[table],) = cursor.fetchone()
    return found


def run_postgres_program(
    program: str, *args: str, stdout: Any = subprocess.DEVNULL, stdin: Any = subprocess.DEVNULL
) -> None:
    """Run a program of PostgreSQL on our database. Raises QuorumError with the last line of its error output."""
    values = connection.get_connection_params()
    known = {option.keyword.decode(): option.envvar.decode() for option in Conninfo.get_defaults() if option.envvar}
    # By the environment and not by arguments, which every user of the machine can read.
    settings = {name: str(values[key]) for key, name in known.items() if values.get(key)}
    command = [str(postgres.binaries_folder() / program), *args]
    done = subprocess.run(
        command, env={**os.environ, **settings}, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, check=False
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no error output"]
        raise QuorumError(f"{program} failed: {said[-1]}")
