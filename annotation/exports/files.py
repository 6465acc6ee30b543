"""Files of an export: written beside under another name, renamed when whole, with their hash. Pure."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from annotation.exports.formats import Format, Row
from corpus.errors import BadInput

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Written:
    """A file as it stands, and what its rows hold."""

    name: str
    rows: int
    bytes: int
    sha256: str
    queries: int
    counts: dict[str, dict[str, int]]

    def in_manifest(self) -> dict[str, Any]:
        """What identifies the file."""
        return {"name": self.name, "rows": self.rows, "bytes": self.bytes, "sha256": self.sha256}


def ready_folder(folder: Path) -> bool:
    """Make the folder if it is missing; True when it was. Raises BadInput unless it is new or empty."""
    try:
        if folder.is_dir():
            if any(folder.iterdir()):
                raise BadInput(f"{folder} is not empty; name a new or an empty folder")
            return False
        folder.mkdir(parents=True)
    except OSError as error:
        raise BadInput(f"{folder} cannot be written: {error.strerror}") from None
    return True


def write_rows(
    folder: Path, form: Format, batches: Iterable[Sequence[Row]], progress: Callable[[int], None] = lambda rows: None
) -> Written:
    """Stream the rows into the format's file. `progress` is told the rows so far after every batch."""
    digest, size, rows, queries, last = sha256(), 0, 0, 0, None
    counted: dict[str, Counter[str]] = {name: Counter() for name in form.counted}
    part = folder / f".{form.file}.part"
    with part.open("xb") as file:

        def put(text: str) -> None:
            nonlocal size
            data = text.encode()
            digest.update(data)
            size += file.write(data)

        put(form.header)
        for batch in batches:
            put("".join(map(form.line, batch)))
            rows += len(batch)
            for name, place in form.counted.items():
                counted[name].update(str(row[place]) for row in batch)
            for row in batch:
                queries, last = queries + (row[0] != last), row[0]
            progress(rows)
    part.rename(folder / form.file)
    counts = {name: dict(sorted(counter.items())) for name, counter in counted.items()}
    return Written(form.file, rows, size, digest.hexdigest(), queries, counts)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """The manifest comes last: a folder that has one is whole."""
    part = folder / f".{MANIFEST}.part"
    part.write_text(json.dumps(manifest, ensure_ascii=False, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    part.rename(folder / MANIFEST)


def discard(folder: Path, form: Format, made: bool) -> None:
    """Take away what an export that failed has left, and the folder if it was made for it."""
    for name in (form.file, MANIFEST):
        (folder / f".{name}.part").unlink(missing_ok=True)
        (folder / name).unlink(missing_ok=True)
    if made:
        folder.rmdir()
