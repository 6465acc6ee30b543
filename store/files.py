"""Files of VAR that all machines share: publish what was made here, fetch what was made elsewhere (docs/adr/0094).

A file has the same name below VAR on every machine, and StoredFile says which content it has. Where
QUORUM_STORE is not set, VAR itself is the store: nothing is copied, and nothing here asks the
database.
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

# A content without a file may be on its way: whoever publishes it writes its row first, and then sends the bytes.
UNUSED = timedelta(days=1)
SWEEP_S = 600.0
# Each is a call to the store; the others wait for the next sweep.
SWEPT_AT_ONCE = 500
_swept = -SWEEP_S


def is_shared() -> bool:
    """Return whether machines share a store; without one the files of VAR are all there is."""
    return bool(settings.STORE)


def open_store() -> ObjectStore:
    """Return the store that QUORUM_STORE names. Raises StoreUnavailable."""
    return ObjectStore(settings.STORE)


def stored_files(path: Path) -> QuerySet[StoredFile]:
    """Return the rows of a file, or of all files below a folder; none for a path outside of VAR."""
    name = name_below_var(path)
    if name is None or not is_shared():
        return StoredFile.objects.none()
    # With the slash: `runs/1` must not take `runs/10` along.
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
    """Bring a file, or a folder with all that is in it, into the store; what stood under its name before goes.

    `leave_out`: names directly below the folder that stay as they are. `changing`: others write to
    the files meanwhile, so copies of them are published. `only_new`: names that the store knows
    stay as they are. Left out, too, are names that begin with a dot (they are being written) and
    paths outside of VAR. Contents that are there already are not sent again. Returns the number of
    files; raises StoreUnavailable.
    """
    if not is_shared() or name_below_var(path) is None:
        return 0
    known = {row.name: row.content_id for row in stored_files(path)}
    contents = {}
    for file in files_below(path):
        name = str(name_below_var(file))
        if _stays_out(path, name, leave_out) or (only_new and name in known):
            continue
        if (content := _put_content(file, known.get(name), changing)) is not None:
            contents[name] = content
    # ADR 0094: all names at once, so that a reader sees the whole folder or the one before.
    with transaction.atomic():
        rows = [
            StoredFile(name=name, content_id=content, node=node_id(), changed_at=Now())
            for name, content in contents.items()
        ]
        StoredFile.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["name"], update_fields=["content", "node", "changed_at"]
        )
        gone = [] if only_new else known.keys() - contents.keys()
        StoredFile.objects.filter(name__in=[one for one in gone if not _stays_out(path, one, leave_out)]).delete()
    return len(contents)


def publish_once(path: Path) -> None:
    """Publish a file under a new name. FileExistsError where the store has it."""
    if not is_shared():
        return
    content = _put_content(path, None, changing=False)
    if content is None:
        raise FileNotFoundError(path)
    # The unique index decides, not a look before: two machines may publish the name at once.
    row = StoredFile(name=str(name_below_var(path)), content_id=content, node=node_id())
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        raise FileExistsError(path) from None


def files_below(path: Path) -> Iterator[Path]:
    """Yield the file, or the regular files of a folder at any depth; folders that go away meanwhile are left out."""
    # Not rglob, which before Python 3.13 raises FileNotFoundError for a checkpoint that is pruned while it walks.
    found = [Path(folder) / name for folder, _folders, names in os.walk(path) for name in names]
    for one in [path] if path.is_file() else sorted(found):
        if one.is_file() and not one.is_symlink():
            yield one


def _stays_out(top: Path, name: str, leave_out: Sequence[str]) -> bool:
    path = PurePosixPath(name).relative_to(str(name_below_var(top)))
    return any(part.startswith(".") for part in path.parts) or bool(path.parts and path.parts[0] in leave_out)


def _put_content(path: Path, known: str | None, changing: bool) -> str | None:
    """Bring a file's content into the store; its hash, or None where it went away."""
    with ExitStack() as stack:
        source = path
        try:
            # What grows between its hash and its sending would lie in the store under a hash that is not its own.
            if changing:
                folder = stack.enter_context(tempfile.TemporaryDirectory(dir=settings.VAR, prefix=".publish-"))
                source = Path(shutil.copyfile(path, Path(folder) / "copy"))
            digest, size = hash_file(source), source.stat().st_size
            if digest == known:
                return digest
            # First the row: the sweep leaves it alone for a day, and waits where both come at once.
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
    """Return the path, once all that the store has of it is on this machine's disk.

    A file of the right size is taken to be the one that is meant, as published names get no other
    content. `newest`: of names that do, those that another machine published last are compared.
    Raises StoreUnavailable.
    """
    if is_shared() and (newest or not path.is_file()):
        for row in stored_files(path):
            _fetch_file(row, newest)
    return path


def fetch_matching(folder: Path, pattern: str) -> list[Path]:
    """Fetch matching files below a folder; return all that are there then."""
    if is_shared():
        depth = len(PurePosixPath(pattern).parts)
        for row in stored_files(folder):
            name = PurePosixPath(row.name).relative_to(str(name_below_var(folder)))
            # `match` compares from the right, so that without the depth files of deeper folders would match, too.
            if len(name.parts) == depth and name.match(pattern):
                _fetch_file(row, newest=False)
    return list(folder.glob(pattern))


def open_stream(path: Path) -> IO[bytes]:
    """Open a file: the local one, else the store's, uncopied. FileNotFoundError."""
    if path.is_file() or (row := stored_files(path).filter(name=name_below_var(path)).first()) is None:
        return path.open("rb")
    return open_store().open(row.content_id)


def _fetch_file(row: StoredFile, newest: bool) -> None:
    target = Path(settings.VAR) / row.name
    if _is_current(target, row, newest):
        return
    with _lock_target(target) as part:
        if _is_current(target, row, newest):
            return  # another process was first
        open_store().get(row.content_id, part)
        # Lists of files go by their time, which is the publication's on every machine.
        os.utime(part, (row.changed_at.timestamp(), row.changed_at.timestamp()))
        part.replace(target)


def _is_current(target: Path, row: StoredFile, newest: bool) -> bool:
    if not target.is_file():
        return False
    # What this machine published may have grown: the file here is never older.
    if row.node == node_id():
        return True
    is_whole = target.stat().st_size == row.content.size
    return is_whole and (not newest or hash_file(target) == row.content_id)


@contextmanager
def _lock_target(target: Path) -> Iterator[Path]:
    """Yield where a file is written before it gets its name; one process at a time fetches it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = target.with_name(f".{target.name}.lock")
    part = target.with_name(f".{target.name}.{uuid4().hex}.part")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)
            # A process that waited and one that comes now may both go on, each with its own part.
            lock.unlink(missing_ok=True)


def delete(path: Path) -> None:
    """Delete a file or folder from the store's names; its contents go later. Local files stay."""
    if is_shared():
        stored_files(path).delete()


def sweep_contents() -> None:
    """Remove contents that no file has had for a day; at most every ten minutes."""
    global _swept
    if not is_shared() or monotonic() - _swept < SWEEP_S:
        return
    _swept = monotonic()
    store = open_store()
    unused = StoredContent.objects.filter(files=None, used_at__lt=Now() - UNUSED)
    for digest in list(unused.values_list("pk", flat=True)[:SWEPT_AT_ONCE]):
        # The row goes with the content: a publisher waits here, and then finds neither.
        with transaction.atomic():
            # Only this side of the outer join can be locked.
            row = unused.filter(pk=digest).select_for_update(of=("self",)).first()
            if row is not None:
                row.delete()
                store.delete(digest)


def remove_local_copies(folder: Path) -> int:
    """Remove from this machine's disk what the store has of a folder, so that it is fetched anew; return the bytes."""
    freed = 0
    for row in stored_files(folder):
        target = Path(settings.VAR) / row.name
        if target.is_file():
            freed += target.stat().st_size
            target.unlink()
    return freed


def refill_contents() -> list[int]:
    """Bring contents that the store has lost into it from this machine's files; return the rows whose is nowhere."""
    store, gone = open_store(), []
    for row in StoredFile.objects.select_related("content").order_by("pk").iterator():
        path = Path(settings.VAR) / row.name
        if store.has(row.content_id):
            continue
        if path.is_file() and hash_file(path) == row.content_id:
            store.put(row.content_id, path)
        else:
            gone.append(row.pk)
    return gone
