"""Backups: one file with a consistent snapshot of an instance's database and the files of VAR that belong to it.

A backup is a tar file. It contains `manifest.json` (version, applied migrations, row counts of all tables, sha256 of
all files), then `database.dump` (in pg_dump's own format, from the snapshot in which the rows were counted), then
`var/...`. `config.restoring` reads it.
"""

import hashlib
import io
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
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
# The parts of VAR that cannot be recreated, or were paid for. Indexes, logs, static files, services and base models
# (VAR/bases) are not among them.
KEPT = ("secret_key", "audit.jsonl", "demo", "exports", "jobs", "models", "spool", "teachers", "vectors")
BEFORE_RESTORE = "before-restore-*.tar"
NO_HASH = "0" * 64

Say = Callable[[str], None]
Progress = Callable[[int, int], object]


def write_backup(
    path: Path, var: Path, say: Say = lambda line: None, progress: Progress = lambda done, total: None
) -> dict[str, Any]:
    """Write the instance to a new file, completely or not at all; return the manifest. Raises BadInput.

    `progress`: called with the number of packed files and that of all.
    """
    if path.exists():
        raise BadInput(f"{path} exists: name a new file")
    # Renamed only when it is complete, so that an interrupted backup never looks like a backup.
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("xb") as file, tempfile.TemporaryDirectory(dir=path.parent, prefix=".backup-") as folder:
            # The file contains secrets: only its owner may read it.
            part.chmod(0o600)
            manifest = _write_archive(file, Path(folder) / DUMP, var, say, progress)
        part.rename(path)
    except StoreUnavailable:
        raise
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return manifest


def instance_id() -> str:
    """Return an id that distinguishes this instance from others whose VAR has the same path, as in Docker."""
    return hashlib.sha256(settings.SECRET_KEY.encode()).hexdigest()[:16]


def prune_backups(folder: Path, keep: int, pattern: str = "*") -> list[Path]:
    """Remove all but the `keep` newest backups of this instance from the folder; return the removed ones.

    The backups that `restore` makes before it replaces anything are not removed, unless `pattern` is theirs.
    """
    backups = [path for path in folder.glob(pattern) if pattern == BEFORE_RESTORE or not path.match(BEFORE_RESTORE)]
    ours = [path for path in backups if path.is_file() and _instance_of(path) == instance_id()]
    older = sorted(ours, key=lambda path: path.stat().st_mtime, reverse=True)[keep:]
    for path in older:
        path.unlink()
    return older


def _instance_of(path: Path) -> str | None:
    """Return the id of the instance in a backup; None if the file is no backup or names none."""
    try:
        with tarfile.open(path, "r:") as tar:
            first = tar.next()
            file = tar.extractfile(first) if first is not None and first.name == MANIFEST else None
            return str(json.loads(file.read())["instance"]) if file is not None else None
    except (tarfile.TarError, EOFError, OSError, ValueError, KeyError, TypeError):
        return None


def _write_archive(file: IO[bytes], dump: Path, var: Path, say: Say, progress: Progress) -> dict[str, Any]:
    version = server_version()
    if line := unsupported_reason(version):
        raise BadInput(line)
    say("dumping the database ...")
    # The rows of all tables are counted in the snapshot that pg_dump writes.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        (snapshot,) = cursor.fetchone()
        # pg_dump reads the snapshot of this transaction, so that the counts fit the dump even if people keep working.
        options = ["-Fc", "--no-owner", "--no-privileges", f"--snapshot={snapshot}"]
        with dump.open("wb") as dump_file:
            run_postgres_program("pg_dump", *options, stdout=dump_file)
        rows = _count_rows(cursor)
    # The regular files of VAR, without those that are being written, whose names begin with a dot.
    local_files: dict[str, Path] = {}
    for kind in KEPT:
        for path in files_below(var / kind):
            relative_path = path.relative_to(var)
            if not any(part.startswith(".") for part in relative_path.parts):
                local_files[f"var/{relative_path}"] = path
    files: dict[str, Path | StoredFile] = {DUMP: dump, **local_files, **_files_of_other_machines(var)}
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
    # The manifest comes first but is complete last: its space is reserved, since all hashes have the same length.
    manifest_entry = tarfile.TarInfo(MANIFEST)
    manifest_entry.size = len(_manifest_bytes(manifest))
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(manifest_entry, io.BytesIO(b" " * manifest_entry.size))
        hashes: dict[str, str] = {}
        for name, source in files.items():
            hashes[name] = (
                _add_file(tar, name, source) if isinstance(source, Path) else _add_stored_file(tar, name, source)
            )
            progress(len(hashes), len(files))
    manifest["files"] = {name: digest for name, digest in hashes.items() if digest}
    file.seek(len(manifest_entry.tobuf()))
    file.write(_manifest_bytes(manifest).ljust(manifest_entry.size))
    return manifest


def _manifest_bytes(manifest: dict[str, Any]) -> bytes:
    return json.dumps(manifest, indent=1, sort_keys=True).encode()


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> str:
    """Pack a file with its current length, since it may grow; return its sha256, or "" if it no longer exists."""
    try:
        source = path.open("rb")
    except FileNotFoundError:
        return ""
    with source:
        status = os.fstat(source.fileno())
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode, entry.mtime = status.st_size, status.st_mode & 0o777, int(status.st_mtime)
        hashing = HashingReader(source)
        try:
            tar.addfile(entry, hashing)
        except OSError as error:
            if error.errno is None:  # Raised by tarfile itself: the file ended early.
                raise QuorumError(f"{path} became shorter while it was read: back up again") from error
            raise
        return hashing.digest.hexdigest()


def _add_stored_file(tar: tarfile.TarFile, name: str, row: StoredFile) -> str:
    """Pack a file directly from the store; return its sha256. Raises StoreUnavailable."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = row.content.size, 0o600, int(row.changed_at.timestamp())
    with open_store().open(row.content_id) as source:
        hashing = HashingReader(source)
        tar.addfile(entry, hashing)
    if (digest := hashing.digest.hexdigest()) != row.content_id:
        raise StoreUnavailable(f"The store gave other bytes than those of {name}: restore it from an older backup")
    return digest


def _files_of_other_machines(var: Path) -> dict[str, StoredFile]:
    """Return the stored files for a backup that are not on this disk, or have changed on another machine."""
    rows_by_name = {}
    for kind in KEPT:
        for row in stored_files(var / kind):
            path = var / row.name
            is_local = path.is_file() and path.stat().st_size == row.content.size
            # Only files of jobs change without a change of their name.
            if row.node != node_id() and not (is_local and kind != "jobs"):
                rows_by_name[f"var/{row.name}"] = row
    return rows_by_name


class HashingReader:
    """A file that hashes the bytes that are read from it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.digest.update(data)
        return data


def server_version() -> int:
    """Return the version of PostgreSQL as a number: 180004 for 18.4."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0])


def _count_rows(cursor: Any) -> dict[str, int]:
    """Return the number of rows of every table in the schema `public`."""
    cursor.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1"
    )
    row_counts = {}
    for (table,) in cursor.fetchall():
        cursor.execute(f'SELECT count(*) FROM "{table}"')
        (row_counts[table],) = cursor.fetchone()
    return row_counts


def run_postgres_program(
    program: str, *args: str, stdout: Any = subprocess.DEVNULL, stdin: Any = subprocess.DEVNULL
) -> None:
    """Run a PostgreSQL program on our database. Raises QuorumError with the last line of its error output."""
    values = connection.get_connection_params()
    variables_by_option = {
        option.keyword.decode(): option.envvar.decode() for option in Conninfo.get_defaults() if option.envvar
    }
    # In the environment, because every user of the machine can read arguments.
    settings = {name: str(values[key]) for key, name in variables_by_option.items() if values.get(key)}
    command = [str(postgres.binaries_folder() / program), *args]
    process = subprocess.run(
        command, env={**os.environ, **settings}, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, check=False
    )
    if process.returncode:
        error_lines = process.stderr.decode(errors="replace").strip().splitlines() or ["no error output"]
        raise QuorumError(f"{program} failed: {error_lines[-1]}")
