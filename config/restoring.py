"""Restoring an instance from a backup (`config.backup`), which is checked completely before one transaction."""

import contextlib
import gzip
import json
import lzma
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from django.db import connection

from config import startup
from config.backup import DUMP, FORMAT, KEPT, MANIFEST, HashingReader, Say, run_postgres_program, server_version
from corpus.errors import BadInput, QuorumError
from store.files import is_shared, refill_contents
from store.models import StoredFile
from store.objects import StoreUnavailable
from store.paths import decode_path, encode_path

CHUNK = 1 << 20
MOST_MANIFEST = 256 << 20
# Base models that jobs and models name, in the given folder.
BASES = """
SELECT base FROM training_model WHERE starts_with(base, %(plain)s) OR starts_with(base, %(stored)s)
UNION SELECT options->>'base' FROM training_job
WHERE starts_with(options->>'base', %(plain)s) OR starts_with(options->>'base', %(stored)s) ORDER BY 1
"""
FILES_WITH_PATHS = ("jobs/**/*.json", "models/**/*.json")
# pg_restore 18 writes this for every server, but servers before 17 do not support it.
TOO_NEW = b"SET transaction_timeout = 0;\n"


def restore_backup(
    path: Path, var: Path, say: Say = lambda line: None, before: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Check the whole file, call `before`, then replace the instance at once; return the manifest.

    Raises BadInput for a file that is no backup, is damaged, or was made by a newer version.
    """
    with tempfile.TemporaryDirectory(dir=var, prefix=".restore-") as name:
        folder = Path(name)
        with _open_archive(path) as tar:
            manifest = _read_manifest(tar, path)
            say(f"checking {len(manifest['files']):,} files ...")
            _unpack_files(tar, folder, manifest, path)
        script = _write_script(folder, manifest)
        _move_paths_in_files(folder / "var", Path(manifest["var"]), var)
        # Only now that the whole file is checked, so that a damaged backup causes no backup of the current state.
        before()
        say("loading the database ...")
        # The session's plans and types become invalid when the tables are replaced.
        connection.close()
        with script.open("rb") as file:
            run_postgres_program("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "--single-transaction", stdin=file)
        # Only after the transaction: if that fails, nothing has changed.
        for part in KEPT:
            old, new = var / part, folder / "var" / part
            # Paid vectors stay if the backup contains none: they are valid for every collection.
            if part == "vectors" and not new.exists():
                continue
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(old) if old.is_dir() else old.unlink()
            if new.exists():
                shutil.move(new, old)
        _refill_store(say)
    # The tables may now be those of an older version: the next command has to check.
    startup.remove_stamp(var)
    return manifest


def missing_bases(bases: Path) -> list[str]:
    """Return the base models in this folder that jobs and models name, but that do not exist."""
    prefix = f"{bases}/"
    with connection.cursor() as cursor:
        cursor.execute(BASES, {"plain": prefix, "stored": encode_path(prefix)})
        return [base for (stored_base,) in cursor.fetchall() if not Path(base := decode_path(stored_base)).exists()]


@contextlib.contextmanager
def _open_archive(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a tar file. Raises BadInput if it cannot be read as one, QuorumError if the disk fails."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
    try:
        with file, tarfile.open(fileobj=file) as tar:
            yield tar
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise BadInput(f"{path} is no backup of Quorum, or it is damaged ({error}): nothing was changed") from error
    except OSError as error:
        raise QuorumError(f"{path} cannot be unpacked ({error.strerror or error}): nothing was changed") from error


def _read_manifest(tar: tarfile.TarFile, path: Path) -> dict[str, Any]:
    first = tar.next()
    file = tar.extractfile(first) if first is not None and first.name == MANIFEST else None
    if first is None or file is None:
        raise BadInput(f"{path} is no backup of Quorum: nothing was changed")
    try:
        manifest = json.loads(file.read()) if first.size <= MOST_MANIFEST else None
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict):
        raise BadInput(f"{path}: its {MANIFEST} cannot be read: nothing was changed")
    if manifest.get("quorum_backup") != FORMAT:
        raise BadInput(f"{path} has a form that this version does not read: restore it with the version that made it")
    if wrong := _wrong_in(manifest):
        raise BadInput(f"{path}: its {MANIFEST} is wrong at {wrong}: nothing was changed")
    from django.db.migrations.loader import MigrationLoader

    applied = {(app, name) for app, _, name in (entry.partition(".") for entry in manifest["migrations"])}
    if newer := startup.unknown_migrations(MigrationLoader(None), applied):
        raise BadInput(f"{path} was made by a newer version ({'.'.join(newer[0])}): upgrade, then restore")
    return manifest


def _wrong_in(manifest: dict[str, Any]) -> str:
    """Return the first key whose value no backup would write, or "" if there is none."""
    var, applied, rows, files = (manifest.get(key) for key in ("var", "migrations", "rows", "files"))
    if not isinstance(var, str) or not Path(var).is_absolute() or "\0" in var:
        return '"var"'
    if not isinstance(applied, list) or not all(isinstance(name, str) for name in applied):
        return '"migrations"'
    # Both are put into SQL as they are (_write_script).
    if not isinstance(rows, dict) or not all(
        re.fullmatch(r"[a-z_][a-z0-9_]*", name) and type(count) is int and count >= 0 for name, count in rows.items()
    ):
        return '"rows"'
    if not isinstance(files, dict) or DUMP not in files:
        return '"files"'
    for name, digest in files.items():
        is_digest = isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest)
        # A name must be a path to one of the kept parts of VAR, and lead nowhere else.
        parts = PurePosixPath(name).parts
        is_clean = str(PurePosixPath(name)) == name and ".." not in parts and "\0" not in name
        is_kept = is_clean and len(parts) > 1 and parts[0] == "var" and parts[1] in KEPT
        if not is_digest or (name != DUMP and not is_kept):
            return f'"files", {name!r}'
    return ""


def _unpack_files(tar: tarfile.TarFile, folder: Path, manifest: dict[str, Any], path: Path) -> None:
    """Unpack the files of the manifest. Raises BadInput if one is missing, changed, or not in the manifest."""
    digests = dict(manifest["files"])
    for entry in tar:
        if entry.name == MANIFEST:
            continue
        source = tar.extractfile(entry) if entry.isreg() and entry.name in digests else None
        if source is None:
            raise BadInput(f"{path} holds {entry.name!r}, which its manifest does not know: nothing was changed")
        target = folder / entry.name
        target.parent.mkdir(parents=True, exist_ok=True)
        hashing = HashingReader(source)
        with target.open("xb") as file:
            shutil.copyfileobj(hashing, file, CHUNK)
        # Only the owner may write to it, and it never runs as its owner, whatever the tar file says.
        target.chmod(entry.mode & 0o755 | 0o600)
        os.utime(target, (entry.mtime, entry.mtime))
        if hashing.digest.hexdigest() != digests.pop(entry.name):
            raise BadInput(f"{path} is damaged at {entry.name!r}: nothing was changed")
    if digests:
        raise BadInput(f"{path} is cut off: {min(digests)!r} is missing, nothing was changed")


def _write_script(folder: Path, manifest: dict[str, Any]) -> Path:
    """Write the SQL that replaces the database in one transaction; return its path."""
    plain, script = folder / "plain.sql", folder / "database.sql"
    with plain.open("wb") as file:
        run_postgres_program("pg_restore", "--no-owner", "--no-privileges", "-f", "-", str(folder / DUMP), stdout=file)
    knows_timeout = server_version() >= 170_000
    with plain.open("rb") as source, script.open("wb") as file:
        file.write(b"DROP SCHEMA public CASCADE; CREATE SCHEMA public;\n")
        for line in source:  # Only at the beginning, because data could contain the same line.
            if line.startswith(b"CREATE "):
                file.write(line)
                break
            if knows_timeout or line != TOO_NEW:
                file.write(line)
        shutil.copyfileobj(source, file, CHUNK)
        file.write(b"\nSET search_path = public;\n")
        # The transaction fails if a table has lost or gained rows.
        for table, count in manifest["rows"].items():
            check = (
                f'DO $$ BEGIN IF (SELECT count(*) FROM "{table}") <> {count} '
                f"THEN RAISE EXCEPTION 'table {table} is not whole'; END IF; END $$;\n"
            )
            file.write(check.encode())
    plain.unlink()
    return script


def _in_json(path: Path, *, ascii: bool = False) -> str:
    """Return the beginning of a JSON string with a path inside this folder."""
    return json.dumps(f"{path}/", ensure_ascii=ascii).removesuffix('"')


def _move_paths_in_files(source: Path, old: Path, new: Path) -> None:
    """Replace the old path of VAR in the files of jobs and models, which the next worker reads."""
    if old == new:
        return
    moves = {_in_json(old, ascii=ascii): _in_json(new, ascii=ascii) for ascii in (True, False)}
    for pattern in FILES_WITH_PATHS:
        for path in source.glob(pattern):
            text = moved = path.read_bytes()
            for before, after in moves.items():
                moved = moved.replace(before.encode(), after.encode())
            if moved != text:
                path.write_bytes(moved)


def _refill_store(say: Say) -> None:
    """Upload restored files that the store lacks; delete the rows of files whose content is lost."""
    if not is_shared():
        return
    try:
        lost_rows = refill_contents()
        StoredFile.objects.filter(pk__in=lost_rows).delete()
        if lost_rows:
            say(f"{len(lost_rows):,} files are neither in the backup nor in the store")
    except StoreUnavailable as error:
        say(f"{error}; once it is there, store publish fills it")
