"""Uploads in parts: begun with a size, added to at the end of what has come, swept a day after the last part."""

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from time import monotonic
from typing import BinaryIO

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db.models import Count, QuerySet, Sum
from django.http import UnreadablePostError
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.imports import shared_parts
from annotation.models import User
from annotation.models.imports import FileImport, Upload
from corpus.errors import BadInput
from corpus.models import Collection
from store.files import is_shared

KEPT = timedelta(days=1)
PART = 1 << 20  # Bytes read at once.
# PostgreSQL and the other folders of VAR may lie on the same disk.
SPARE = 1 << 30  # Bytes that an upload leaves free on the disk.
MAX_UPLOADS = 1_000  # Of a collection, that wait for their import: as many as an archive may hold.
SWEEP_S = 600.0
_swept = -SWEEP_S


class UploadConflict(Exception):
    """A part that does not go on where the file ends, or a second request for the same file."""


class DamagedPart(Exception):
    """A part whose bytes are not those of its checksum; nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class Checksum:
    """The hash that the bytes of a part must have, and the algorithm."""

    algorithm: str
    digest: bytes


def path_of(upload: Upload) -> Path:
    """Return where the bytes of an upload lie."""
    return Path(settings.VAR) / "uploads" / upload.collection.name / str(upload.pk)


def count_received(upload: Upload) -> int:
    """Return how many bytes have come."""
    path = path_of(upload)
    if is_shared():
        return shared_parts.count_published(path)
    return path.stat().st_size if path.is_file() else 0


def fetch_upload(upload: Upload) -> Path:
    """Return where the bytes of an upload lie, once this machine has all that came to any."""
    path = path_of(upload)
    if is_shared() and shared_parts.count_published(path):
        with _open_copy(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            shared_parts.complete_file(path, file)
    return path


def expires_at(upload: Upload) -> datetime:
    """Return when an upload to which nothing is added any more may be swept."""
    return upload.changed_at + KEPT


def _open_copy(path: Path) -> BinaryIO:
    """Open the local file of an upload; where machines share a store it may be made here first."""
    if is_shared():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return path.open("r+b")


def begin_upload(collection: Collection, owner: User, name: str, size: int, modified: str = "") -> Upload:
    """Make room for a file. Raises BadInput for one that is empty, too large, over the quota, or has no room."""
    # The name is only ever shown: the file on the disk is called by its number.
    name = PurePosixPath(name.replace("\\", "/")).name.replace("\0", "")[:255] or "file"
    if size < 1:
        raise BadInput(_("%(name)s: the file is empty") % {"name": name})
    if size > settings.MAX_FILE_BYTES:
        most = f"{settings.MAX_FILE_BYTES / 1e9:g}"
        raise BadInput(_("%(name)s: larger than %(most)s GB; import it from a shell") % {"name": name, "most": most})
    folder = Path(settings.VAR) / "uploads" / collection.name
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(folder).free < size + SPARE:
        raise BadInput(_("%(name)s: the server's disk has no room for it") % {"name": name})
    upload = Upload.objects.create(collection=collection, owner=owner, name=name, size=size, modified=modified[:40])
    # Counted with the row in it: of two that begin at once, neither overlooks the other.
    waiting = Upload.objects.filter(collection=collection).aggregate(sum=Sum("size"), count=Count("pk"))
    if waiting["count"] > MAX_UPLOADS:
        upload.delete()
        said = _(
            "%(name)s: more than %(most)s files wait in this collection; import or delete some, or send an archive"
        )
        raise BadInput(said % {"name": name, "most": f"{MAX_UPLOADS:,}"})
    if (waiting["sum"] or 0) > settings.UPLOADS_BYTES:
        upload.delete()
        most = f"{settings.UPLOADS_BYTES / 1e9:g}"
        said = _("%(name)s: uploads of a collection may have %(most)s GB together; import or delete earlier ones first")
        raise BadInput(said % {"name": name, "most": most})
    path_of(upload).touch()
    return upload


def add_part(upload: Upload, offset: int, read: Callable[[int], bytes], checksum: Checksum | None = None) -> int:
    """Add what `read` gives to the end of the file; return how many bytes have come.

    What came before a connection broke off stays, but for a part with a `checksum`, which is taken
    whole or not at all. Raises UploadConflict where the file does not end at `offset`, or where
    another request adds to it, and DamagedPart.
    """
    path = path_of(upload)
    try:
        file = _open_copy(path)
    except FileNotFoundError:
        raise UploadConflict from None
    with file:
        try:
            # Refused at once, not waited for: a client that repeats its request would hold one
            # worker of the server after another.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UploadConflict from None
        if is_shared():
            shared_parts.complete_file(path, file)
        if file.seek(0, 2) != offset:
            raise UploadConflict
        begin = published = offset
        parts = _read_parts(read, upload.size - offset)
        for part in _check_parts(parts, checksum, path.parent) if checksum else parts:
            offset += file.write(part)
            # One request may bring gigabytes, and a machine that dies loses what is not published.
            if offset - published >= shared_parts.ROOM:
                published = _publish_part(path, file, published, offset)
        _publish_part(path, file, published, offset)
    if offset > begin:
        upload.changed_at = timezone.now()
        Upload.objects.filter(pk=upload.pk).update(changed_at=upload.changed_at)
    return offset


def _read_parts(read: Callable[[int], bytes], left: int) -> Iterator[bytes]:
    while left > 0:
        try:
            part = read(min(PART, left))
        # The connection broke off: what has come is kept, the client asks for the offset.
        except (UnreadablePostError, OSError):
            return
        if not part:
            return
        left -= len(part)
        yield part


def _check_parts(parts: Iterable[bytes], checksum: Checksum, folder: Path) -> Iterator[bytes]:
    hashed = hashlib.new(checksum.algorithm)
    # The upload's own file would keep, of a process that is killed, bytes whose checksum nobody has compared.
    with TemporaryFile(dir=folder) as file:
        for part in parts:
            file.write(part)
            hashed.update(part)
        if hashed.digest() != checksum.digest:
            raise DamagedPart
        file.seek(0)
        while part := file.read(PART):
            yield part


def _publish_part(path: Path, file: BinaryIO, begin: int, end: int) -> int:
    """Let other machines, if any, have what came; return its end. Raises UploadConflict."""
    if is_shared() and end > begin:
        file.flush()
        try:
            shared_parts.publish_part(path, begin, end)
        except FileExistsError:
            file.truncate(begin)  # what another machine took counts
            raise UploadConflict from None
    return end


def store_whole(collection: Collection, owner: User, file: UploadedFile) -> Upload:  # type: ignore[type-arg]
    """Keep a file that came with a form. Raises BadInput as `begin_upload` does."""
    upload = begin_upload(collection, owner, file.name or "", file.size or 0)
    add_part(upload, 0, file.read)
    return upload


def free_uploads(collection: Collection, owner: User) -> QuerySet[Upload]:
    """Return a person's own uploads that no import uses yet, the oldest first."""
    rows = Upload.objects.filter(collection=collection, owner=owner, file_import=None)
    return rows.select_related("collection").order_by("pk")


def delete_upload(upload: Upload) -> None:
    """Delete an upload with its bytes."""
    shared_parts.delete_parts(path_of(upload))
    path_of(upload).unlink(missing_ok=True)
    upload.delete()


def delete_complete(uploads: Iterable[Upload]) -> None:
    """Delete files of which no import can be made; an unfinished one is kept, to go on."""
    # Those that another import has taken meanwhile are that import's.
    free = Upload.objects.filter(pk__in=[upload.pk for upload in uploads], file_import=None)
    for upload in free.select_related("collection"):
        if count_received(upload) == upload.size:
            delete_upload(upload)


def sweep_uploads() -> None:
    """Delete what nothing was added to for a day, but for files of imports that wait or run; every ten minutes."""
    global _swept
    if monotonic() - _swept < SWEEP_S:
        return
    _swept = monotonic()
    busy = FileImport.objects.filter(dry_run=False, state__in=[FileImport.WAITING, FileImport.RUNNING])
    old = Upload.objects.filter(changed_at__lt=timezone.now() - KEPT).exclude(file_import__in=busy)
    for upload in old.select_related("collection"):
        # Deleting the ones before took time, in which a part of this one may have come or its import have begun.
        if old.filter(pk=upload.pk).exists():
            delete_upload(upload)
