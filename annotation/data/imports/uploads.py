"""Resumable uploads: begun with a size, extended part by part, deleted a day after the last part."""

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

from annotation.data.imports import shared_parts
from annotation.data.imports.shared_parts import parts_folder
from annotation.models import User
from annotation.models.imports import FileImport, Upload
from corpus.errors import BadInput
from corpus.models import Collection
from store import files
from store.files import is_shared

RETENTION = timedelta(days=1)
PART = 1 << 20  # Bytes read at once.
# PostgreSQL and the other folders of VAR may lie on the same disk.
SPARE = 1 << 30  # Bytes that an upload leaves free on the disk.
MAX_UPLOADS = 1_000  # In a collection and not yet imported: as many files as an archive may contain.
SWEEP_S = 600.0
_swept = -SWEEP_S


class UploadConflict(Exception):
    """A part that does not begin where the file ends, or a second request for the same file."""


class DamagedPart(Exception):
    """A part that does not match its checksum; none of it is kept."""


@dataclass(frozen=True, slots=True)
class Checksum:
    """The hash that the bytes of a part must have, and the algorithm."""

    algorithm: str
    digest: bytes


def path_of(upload: Upload) -> Path:
    """Return the path of an upload's file."""
    return Path(settings.VAR) / "uploads" / upload.collection.name / str(upload.pk)


def count_received(upload: Upload) -> int:
    """Return how many bytes of an upload have been received."""
    path = path_of(upload)
    if is_shared():
        return shared_parts.count_published(path)
    try:
        return path.stat().st_size
    except FileNotFoundError:
        # Deleted by another request since the row was read.
        return 0


def fetch_upload(upload: Upload) -> Path:
    """Return the path of an upload's file, completed with what other machines have received."""
    path = path_of(upload)
    if is_shared() and shared_parts.count_published(path):
        with _open_copy(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            shared_parts.complete_file(path, file)
    return path


def expires_at(upload: Upload) -> datetime:
    """Return when an upload may be deleted, if no further part comes."""
    return upload.changed_at + RETENTION


def _open_copy(path: Path) -> BinaryIO:
    """Open the local file of an upload; where machines share a store, create it if it is not here yet."""
    if is_shared():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return path.open("r+b")


def begin_upload(collection: Collection, owner: User, name: str, size: int, modified: str = "") -> Upload:
    """Begin an upload. Raises BadInput for a file that is empty, too large, over the quota or over the disk's space."""
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
    # Counted after the row is there, so that two uploads that begin at once see each other.
    totals = Upload.objects.filter(collection=collection).aggregate(sum=Sum("size"), count=Count("pk"))
    if totals["count"] > MAX_UPLOADS:
        upload.delete()
        message = _(
            "%(name)s: more than %(most)s files wait in this collection; import or delete some, or send an archive"
        )
        raise BadInput(message % {"name": name, "most": f"{MAX_UPLOADS:,}"})
    if (totals["sum"] or 0) > settings.UPLOADS_BYTES:
        upload.delete()
        most = f"{settings.UPLOADS_BYTES / 1e9:g}"
        message = _(
            "%(name)s: uploads of a collection may have %(most)s GB together; import or delete earlier ones first"
        )
        raise BadInput(message % {"name": name, "most": most})
    path_of(upload).touch()
    return upload


def add_part(upload: Upload, offset: int, read: Callable[[int], bytes], checksum: Checksum | None = None) -> int:
    """Append what `read` returns to the file; return how many bytes have been received.

    If the connection breaks, the bytes before stay, except those of a part with a `checksum`, which is
    added whole or not at all. Raises UploadConflict where the file does not end at `offset` or another
    request adds to it, and DamagedPart.
    """
    path = path_of(upload)
    try:
        file = _open_copy(path)
    except FileNotFoundError:
        raise UploadConflict from None
    with file:
        try:
            # Refused at once instead of waiting: a client that repeats its request would occupy one
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
            # One request may bring gigabytes, and a machine that fails loses what is not published.
            if offset - published >= shared_parts.ROOM:
                published = _publish_part(path, file, published, offset)
        _publish_part(path, file, published, offset)
    if offset > begin:
        upload.changed_at = timezone.now()
        Upload.objects.filter(pk=upload.pk).update(changed_at=upload.changed_at)
    return offset


def _read_parts(read: Callable[[int], bytes], remaining: int) -> Iterator[bytes]:
    while remaining > 0:
        try:
            part = read(min(PART, remaining))
        # The connection broke: the received bytes stay, and the client asks for the offset.
        except (UnreadablePostError, OSError):
            return
        if not part:
            return
        remaining -= len(part)
        yield part


def _check_parts(parts: Iterable[bytes], checksum: Checksum, folder: Path) -> Iterator[bytes]:
    hashed = hashlib.new(checksum.algorithm)
    # A temporary file: if the process is killed, unverified bytes must not stay in the upload's file.
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
    """Publish the bytes from `begin` to `end` for other machines, if any; return `end`. Raises UploadConflict."""
    if is_shared() and end > begin:
        file.flush()
        try:
            shared_parts.publish_part(path, begin, end)
        except FileExistsError:
            file.truncate(begin)  # Another machine was first: its bytes count.
            raise UploadConflict from None
    return end


def store_whole(collection: Collection, owner: User, file: UploadedFile) -> Upload:  # type: ignore[type-arg]
    """Store a file that came with a form. Raises BadInput as `begin_upload` does."""
    upload = begin_upload(collection, owner, file.name or "", file.size or 0)
    add_part(upload, 0, file.read)
    return upload


def free_uploads(collection: Collection, owner: User) -> QuerySet[Upload]:
    """Return a person's uploads that no import uses yet, the oldest first."""
    rows = Upload.objects.filter(collection=collection, owner=owner, file_import=None)
    return rows.select_related("collection").order_by("pk")


def delete_upload(upload: Upload) -> None:
    """Delete an upload and its file."""
    path = path_of(upload)
    files.delete(parts_folder(path))
    shutil.rmtree(parts_folder(path), ignore_errors=True)
    path.unlink(missing_ok=True)
    upload.delete()


def delete_complete(uploads: Iterable[Upload]) -> None:
    """Delete completed uploads that no import uses; an unfinished one stays, so that it can be resumed."""
    free = Upload.objects.filter(pk__in=[upload.pk for upload in uploads], file_import=None)
    for upload in free.select_related("collection"):
        if count_received(upload) == upload.size:
            delete_upload(upload)


def sweep_uploads() -> None:
    """Delete uploads unchanged for a day, except those of waiting or running imports; at most every ten minutes."""
    global _swept
    if monotonic() - _swept < SWEEP_S:
        return
    _swept = monotonic()
    busy = FileImport.objects.filter(dry_run=False, state__in=[FileImport.WAITING, FileImport.RUNNING])
    old = Upload.objects.filter(changed_at__lt=timezone.now() - RETENTION).exclude(file_import__in=busy)
    for upload in old.select_related("collection"):
        # Asked again: while others were deleted, a part of this one may have come or its import have begun.
        if old.filter(pk=upload.pk).exists():
            delete_upload(upload)
