"""Uploads received by several machines: parts are published in the store and copied to each local file."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from store import files
from store.models import StoredFile
from store.paths import name_below_var

ROOM = 64 << 20  # Bytes after which received parts are published, while the request continues.
COPIED = 1 << 20  # Bytes copied at once.


def parts_folder(path: Path) -> Path:
    """Return the name under which the parts of the upload at `path` are published."""
    return path.with_name(f"{path.name}.parts")


def list_parts(path: Path) -> Iterator[tuple[int, StoredFile]]:
    """Yield the parts in their order with their offsets; each begins where the one before ends."""
    folder = name_below_var(parts_folder(path))
    parts = {row.name: row for row in files.stored_files(parts_folder(path))}
    offset = 0
    while (row := parts.get(f"{folder}/{offset:020}")) is not None and row.content.size:
        yield offset, row
        offset += row.content.size


def count_published(path: Path) -> int:
    """Return how many bytes all machines together have received."""
    return sum(row.content.size for _offset, row in list_parts(path))


def complete_file(path: Path, file: BinaryIO) -> None:
    """Complete the local copy with what other machines have received. The caller has locked it."""
    size, end = file.seek(0, os.SEEK_END), 0
    for offset, row in list_parts(path):
        end = offset + row.content.size
        if end <= size:
            continue
        file.truncate(offset)
        file.seek(offset)
        with files.open_store().open(row.content_id) as part:
            shutil.copyfileobj(part, file, COPIED)
    # Beyond the end may be bytes of a killed process, which it never published or acknowledged.
    file.truncate(end)
    file.flush()


def publish_part(path: Path, offset: int, end: int) -> None:
    """Publish the bytes from `offset` to `end` of the local copy. Raises FileExistsError where that part exists."""
    part = parts_folder(path) / f"{offset:020}"
    part.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("rb") as source, part.open("wb") as target:
            source.seek(offset)
            for at in range(offset, end, COPIED):
                target.write(source.read(min(COPIED, end - at)))
        files.publish_once(part)
    finally:
        part.unlink(missing_ok=True)
