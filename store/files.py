"""Files below VAR that all machines share: publish those made here, fetch those made elsewhere (docs/adr/0094).

A file has the same name below VAR on every machine, and a StoredFile with the hash of its content. Without
QUORUM_STORE, VAR itself is the store: nothing is copied, and nothing here queries the database.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from hashlib import file_digest
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import IO
from uuid import uuid4

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from store.models import StoredContent, StoredFile
from store.nodes import node_id
from store.objects import ObjectStore
from store.paths import name_below_var

# A content without a file may still be uploading: its row is written first, then its bytes.
UNUSED = timedelta(days=1)
SWEEP_S = 600.0
# Each is a call to the store; the rest waits for the next sweep.
SWEPT_AT_ONCE = 500
_swept = -SWEEP_S


def is_shared() -> bool:
    """Return whether machines share a store (QUORUM_STORE)."""
    return bool(settings.STORE)


def open_store() -> ObjectStore:
    """Return the store that QUORUM_STORE names. Raises StoreUnavailable."""
    return ObjectStore(settings.STORE)


def stored_files(path: Path) -> QuerySet[StoredFile]:
    """Return the rows of a file, or of all files below a folder; none for a path outside of VAR."""
    name = name_below_var(path)
    if name is None or not is_shared():
        return StoredFile.objects.none()
    # With the slash, so that `runs/1` does not match `runs/10`.
    rows = StoredFile.objects.filter(Q(name=name) | Q(name__startswith=f"{name}/"))
    return rows.select_related("content").order_by("name")


def hash_file(path: Path) -> str:
    """Return the sha256 of a file, in hex."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def exists(path: Path) -> bool:
    """Return whether a file or folder is on this machine's disk, or in the store."""
    return path.exists() or (is_shared() and stored_files(path).exists())


def publish(path: Path, *, leave_out: Sequence[str] = (), changing: bool = False, only_new: bool = False) -> int:
    """Publish a file, or a folder with all its files, in place of what was published under its name.

    `leave_out`: names directly below the folder that stay as they are. `changing`: the files are being
    written to, so copies of them are published. `only_new`: published names stay as they are. Names that
    begin with a dot (unfinished files) and paths outside of VAR are left out, too. Existing contents are
    not sent again. Returns the number of files; raises StoreUnavailable.
    """
    if not is_shared() or name_below_var(path) is None:
        return 0
    published = {row.name: row.content_id for row in stored_files(path)}
    contents = {}
    for file in files_below(path):
        name = str(name_below_var(file))
        if _is_left_out(path, name, leave_out) or (only_new and name in published):
            continue
        if (content := _put_content(file, published.get(name), changing)) is not None:
            contents[name] = content
    # ADR 0094: all names at once, so that readers see either the old folder or the new one.
    with transaction.atomic():
        rows = [
            StoredFile(name=name, content_id=content, node=node_id(), changed_at=Now())
            for name, content in contents.items()
        ]
        StoredFile.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["name"], update_fields=["content", "node", "changed_at"]
        )
        removed = [] if only_new else published.keys() - contents.keys()
        removed = [name for name in removed if not _is_left_out(path, name, leave_out)]
        StoredFile.objects.filter(name__in=removed).delete()
    return len(contents)


def publish_once(path: Path) -> None:
    """Publish a file under a new name. Raises FileExistsError where the name is published."""
    if not is_shared():
        return
    content = _put_content(path, None, changing=False)
    if content is None:
        raise FileNotFoundError(path)
    # The unique index decides, since two machines may publish the name at once.
    row = StoredFile(name=str(name_below_var(path)), content_id=content, node=node_id())
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        raise FileExistsError(path) from None


def files_below(path: Path) -> Iterator[Path]:
    """Yield the file, or the regular files of a folder at any depth, without folders that are deleted meanwhile."""
    # Not rglob, which before Python 3.13 raises FileNotFoundError for a folder that is deleted while it walks.
    files = [Path(folder) / name for folder, _folders, names in os.walk(path) for name in names]
    for file in [path] if path.is_file() else sorted(files):
        if file.is_file() and not file.is_symlink():
            yield file


def _is_left_out(top: Path, name: str, leave_out: Sequence[str]) -> bool:
    path = PurePosixPath(name).relative_to(str(name_below_var(top)))
    return any(part.startswith(".") for part in path.parts) or bool(path.parts and path.parts[0] in leave_out)


def _put_content(path: Path, published: str | None, changing: bool) -> str | None:
    """Put a file's content into the store; return its hash, or None where the file was deleted meanwhile."""
    with ExitStack() as stack:
        source = path
        try:
            # A file that grows between hashing and sending would be stored under a wrong hash.
            if changing:
                folder = stack.enter_context(tempfile.TemporaryDirectory(dir=settings.VAR, prefix=".publish-"))
                source = Path(shutil.copyfile(path, Path(folder) / "copy"))
            digest, size = hash_file(source), source.stat().st_size
            if digest == published:
                return digest
            # The row comes first: then the sweep leaves the content alone for a day.
            content = StoredContent(sha256=digest, size=size, used_at=Now())
            StoredContent.objects.bulk_create(
                [content], update_conflicts=True, unique_fields=["sha256"], update_fields=["used_at"]
            )
            store = open_store()
            if not store.has(digest):
                store.put(digest, source)
        except FileNotFoundError:
            return None
        return digest


def fetch(path: Path, *, newest: bool = False) -> Path:
    """Fetch a file or folder from the store to this machine's disk if it is not there; return its path.

    A local file of the right size is taken as current, since published names usually keep their content.
    `newest`: for names that do not, files last published by another machine are compared by hash. Raises
    StoreUnavailable.
    """
    if is_shared() and (newest or not path.is_file()):
        for row in stored_files(path):
            _fetch_file(row, newest)
    return path


def fetch_matching(folder: Path, pattern: str) -> list[Path]:
    """Fetch the matching files below a folder; return the paths of all of them."""
    if is_shared():
        depth = len(PurePosixPath(pattern).parts)
        for row in stored_files(folder):
            name = PurePosixPath(row.name).relative_to(str(name_below_var(folder)))
            # `match` compares from the right, so without the depth files in deeper folders would match, too.
            if len(name.parts) == depth and name.match(pattern):
                _fetch_file(row, newest=False)
    return list(folder.glob(pattern))


def open_stream(path: Path) -> IO[bytes]:
    """Open the local file, else the store's content without a copy. Raises FileNotFoundError."""
    if path.is_file() or (row := stored_files(path).filter(name=name_below_var(path)).first()) is None:
        return path.open("rb")
    return open_store().open(row.content_id)


def _fetch_file(row: StoredFile, newest: bool) -> None:
    target = Path(settings.VAR) / row.name
    if _is_current(target, row, newest):
        return
    with _lock_target(target) as part:
        if _is_current(target, row, newest):
            return  # Another process was first.
        open_store().get(row.content_id, part)
        # On every machine the file's time is that of its publication, by which lists are sorted.
        os.utime(part, (row.changed_at.timestamp(), row.changed_at.timestamp()))
        part.replace(target)


def _is_current(target: Path, row: StoredFile, newest: bool) -> bool:
    try:
        size = target.stat().st_size
        # A file that this machine published last is current here, even if it has grown since.
        if row.node == node_id():
            return True
        return size == row.content.size and (not newest or hash_file(target) == row.content_id)
    except FileNotFoundError:
        return False  # Not here, or deleted meanwhile.


@contextmanager
def _lock_target(target: Path) -> Iterator[Path]:
    """Lock a file while it is fetched; yield the path of the part to write before it gets its name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = target.with_name(f".{target.name}.lock")
    part = target.with_name(f".{target.name}.{uuid4().hex}.part")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)
            # A waiting process and a new one may both continue, each with its own part.
            lock.unlink(missing_ok=True)


def delete(path: Path) -> None:
    """Delete the names of a file or folder; their contents are swept later. Local files stay."""
    if is_shared():
        stored_files(path).delete()


def sweep_contents() -> None:
    """Delete contents that no file has used for a day; at most every ten minutes."""
    global _swept
    if not is_shared() or monotonic() - _swept < SWEEP_S:
        return
    _swept = monotonic()
    store = open_store()
    unused = StoredContent.objects.filter(files=None, used_at__lt=Now() - UNUSED)
    for digest in list(unused.values_list("pk", flat=True)[:SWEPT_AT_ONCE]):
        # The row is locked, so that a concurrent publisher waits and then finds neither row nor content.
        with transaction.atomic():
            # `of`: only this side of the outer join can be locked.
            row = unused.filter(pk=digest).select_for_update(of=("self",)).first()
            if row is not None:
                row.delete()
                store.delete(digest)


def remove_local_copies(folder: Path) -> int:
    """Delete this machine's copies of a folder's published files, so that they are fetched again; return the bytes."""
    freed = 0
    for row in stored_files(folder):
        target = Path(settings.VAR) / row.name
        if target.is_file():
            freed += target.stat().st_size
            target.unlink()
    return freed


def refill_contents() -> list[int]:
    """Put lost contents back into the store from this machine's files; return the ids of files still without one."""
    store, missing = open_store(), []
    for row in StoredFile.objects.select_related("content").order_by("pk").iterator():
        path = Path(settings.VAR) / row.name
        if store.has(row.content_id):
            continue
        if path.is_file() and hash_file(path) == row.content_id:
            store.put(row.content_id, path)
        else:
            missing.append(row.pk)
    return missing
