"""One file that holds an instance: the database as one moment saw it, and the files of VAR that belong to it.

A backup is a tar file: `manifest.json` first (version, applied migrations, rows of every table, sha256 of every file),
then `database.dump` (pg_dump's own format, taken in the snapshot in which the rows were counted), then `var/...`.
Restoring happens in one transaction of the database, after everything in the file was checked against the manifest.
"""

import contextlib
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from django.apps import apps
from django.core.cache import cache
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from config.services import migrations, postgres
from corpus.errors import BadInput, QuorumError

VERSION = 1
MANIFEST, DUMP = "manifest.json", "database.dump"
KEPT = ("secret_key", "audit.jsonl", "demo", "exports", "jobs", "models", "spool", "teachers")
"""What of VAR belongs to an instance and cannot be made again. Indexes, logs, static files and services are not."""
FOLDERS = "folder"
"""Name of the columns that hold a path, which moves with VAR."""
CHUNK = 1 << 20

Say = Callable[[str], None]


def quiet(line: str) -> None:
    """Tell nobody."""


def backup(path: Path, var: Path, say: Say = quiet) -> dict[str, Any]:
    """Write the instance to a new file, whole or not at all; returns the manifest.

    Raises BadInput when the file exists or cannot be written. The file holds secrets: only its owner may read it.
    """
    if path.exists():
        raise BadInput(f"{path} exists: name a new file")
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("xb") as file, tempfile.TemporaryDirectory(dir=path.parent, prefix=".backup-") as folder:
            part.chmod(0o600)
            manifest = _write(file, Path(folder) / DUMP, var, say)
        part.rename(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return manifest


def _write(file: IO[bytes], dump: Path, var: Path, say: Say) -> dict[str, Any]:
    say("dumping the database ...")
    rows = _dump(dump)
    files = list(_files(var))
    say(f"packing {len(files):,} files ...")
    hashes = {DUMP: _sha256(dump)} | {f"var/{one.relative_to(var)}": _sha256(one) for one in files}
    manifest = {
        "quorum_backup": VERSION,
        "var": str(var),
        "migrations": _applied(),
        "rows": rows,
        "files": hashes,
    }
    with tarfile.open(fileobj=file, mode="w") as tar:
        text = json.dumps(manifest, indent=1, sort_keys=True).encode()
        entry = tarfile.TarInfo(MANIFEST)
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
        tar.add(dump, DUMP)
        for one in files:
            tar.add(one, f"var/{one.relative_to(var)}")
    return manifest


def _files(var: Path) -> Iterator[Path]:
    """Regular files that are kept; what is being written (a name that begins with a dot) is left out."""
    for name in KEPT:
        top = var / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            inside = path.relative_to(var).parts
            if path.is_file() and not path.is_symlink() and not any(part.startswith(".") for part in inside):
                yield path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _dump(path: Path) -> dict[str, int]:
    """pg_dump in the snapshot of a transaction that counts the rows of all tables."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        (snapshot,) = cursor.fetchone()
        with path.open("wb") as file:
            _run("pg_dump", "-Fc", "--no-owner", "--no-privileges", f"--snapshot={snapshot}", stdout=file)
        return _counts(cursor)


def _counts(cursor: Any) -> dict[str, int]:
    """Rows of every table of ours, by its name."""
    cursor.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1"
    )
    found = {}
    for (table,) in cursor.fetchall():
        cursor.execute(f'SELECT count(*) FROM "{table}"')
        (found[table],) = cursor.fetchone()
    return found


def _applied() -> list[str]:
    return sorted(f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations())


def _run(program: str, *args: str, stdout: Any = subprocess.DEVNULL, stdin: Any = subprocess.DEVNULL) -> None:
    """A program of PostgreSQL on our database. Raises QuorumError with the last thing that it said."""
    values = connection.get_connection_params()
    known = {"dbname": "PGDATABASE", "user": "PGUSER", "password": "PGPASSWORD", "host": "PGHOST", "port": "PGPORT"}
    settings = {name: str(values[key]) for key, name in known.items() if values.get(key)}
    command = [str(postgres.binaries() / program), *args]
    done = subprocess.run(
        command, env={**os.environ, **settings}, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, check=False
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise QuorumError(f"{program} failed: {said[-1]}")


def restore(path: Path, var: Path, say: Say = quiet) -> dict[str, Any]:
    """Put the instance back to what the file holds; returns its manifest.

    Everything is checked before anything changes. Raises BadInput for a file that is no backup, is damaged, or was
    made by a newer version.
    """
    try:
        with tarfile.open(path) as tar, tempfile.TemporaryDirectory(dir=var, prefix=".restore-") as folder:
            manifest = _manifest(tar, path)
            say(f"checking {len(manifest['files']):,} files ...")
            _unpack(tar, Path(folder), manifest, path)
            say("loading the database ...")
            _load(Path(folder), manifest, var)
            _replace_files(Path(folder) / "var", var)
    except (tarfile.TarError, EOFError) as error:
        raise BadInput(f"{path} is no backup of Quorum, or it is damaged ({error}): nothing was changed") from error
    except FileNotFoundError as error:
        raise BadInput(f"{error.filename}: no such file") from error
    cache.clear()
    migrations.forget(var)
    return manifest


def _manifest(tar: tarfile.TarFile, path: Path) -> dict[str, Any]:
    first = tar.next()
    file = tar.extractfile(first) if first is not None and first.name == MANIFEST else None
    if file is None:
        raise BadInput(f"{path} is no backup of Quorum: nothing was changed")
    manifest: dict[str, Any] = json.loads(file.read())
    if manifest.get("quorum_backup") != VERSION:
        raise BadInput(f"{path} has a form that this version does not read: restore it with the version that made it")
    known = {f"{app}.{name}" for app, name in _known_migrations()}
    if newer := sorted(set(manifest["migrations"]) - known):
        raise BadInput(f"{path} was made by a newer version ({newer[0]}): upgrade, then restore")
    return manifest


def _known_migrations() -> set[tuple[str, str]]:
    from django.db.migrations.loader import MigrationLoader

    return set(MigrationLoader(None).disk_migrations)


def _unpack(tar: tarfile.TarFile, folder: Path, manifest: dict[str, Any], path: Path) -> None:
    """Every file of the manifest, and no other, with the content that it had."""
    wanted = dict(manifest["files"])
    for entry in tar:
        if entry.name == MANIFEST:
            continue
        if entry.name not in wanted or not entry.isfile():
            raise BadInput(f"{path} holds {entry.name!r}, which its manifest does not know: nothing was changed")
        tar.extract(entry, folder, filter="data")
        if _sha256(folder / entry.name) != wanted.pop(entry.name):
            raise BadInput(f"{path} is damaged at {entry.name!r}: nothing was changed")
    if wanted:
        raise BadInput(f"{path} is cut off: {min(wanted)!r} is missing, nothing was changed")


def _load(folder: Path, manifest: dict[str, Any], var: Path) -> None:
    """Everything in one transaction: whoever looks sees the old instance, or the new one."""
    script = folder / "database.sql"
    with script.open("wb") as file:
        file.write(b"DROP SCHEMA public CASCADE; CREATE SCHEMA public;\n")
        file.flush()
        _run("pg_restore", "--no-owner", "--no-privileges", "-f", "-", str(folder / DUMP), stdout=file)
    with script.open("a") as file:
        file.write("\nSET search_path = public;\n" + _checks(manifest["rows"]) + _moved(Path(manifest["var"]), var))
    connection.close()
    with script.open("rb") as file:
        _run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "--single-transaction", stdin=file)


def _checks(rows: dict[str, int]) -> str:
    """Ends the transaction with an error when a table does not hold what it held."""
    return "".join(
        f'DO $$ BEGIN IF (SELECT count(*) FROM "{table}") <> {int(count)} '
        f"THEN RAISE EXCEPTION 'table {table} is not whole'; END IF; END $$;\n"
        for table, count in rows.items()
    )


def _moved(old: Path, new: Path) -> str:
    """Paths inside VAR follow it to where it is now."""
    if old == new:
        return ""
    models = [model for model in apps.get_models() if any(field.name == FOLDERS for field in model._meta.get_fields())]
    before, after = (str(path).replace("'", "''") + "/" for path in (old, new))
    return "".join(
        f"UPDATE \"{model._meta.db_table}\" SET folder = '{after}' || substr(folder, {len(str(old)) + 2}) "
        f"WHERE starts_with(folder, '{before}');\n"
        for model in models
    )


def _replace_files(source: Path, var: Path) -> None:
    """The files of VAR that a backup keeps are those of the backup, and no others."""
    for name in KEPT:
        old, new = var / name, source / name
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        if new.exists():
            shutil.move(new, old)
