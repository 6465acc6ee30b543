"""Files of an export: written under another name, renamed when whole, with their hash. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from annotation.exports.formats import Format, Row
from corpus.errors import BadInput

MANIFEST = "manifest.json"
Counts = dict[str, Any]  # rows, queries, and rows by what the format counts.


class ExportOutput:
    """A file that is being written beside its place, and its hash. `close` puts it there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self.size = 0
        self._digest = sha256()
        self._part = path.with_name(f".{path.name}.part")
        self._file = self._part.open("xb")

    def write(self, data: bytes) -> int:
        """Add bytes, and return how many there were."""
        self._digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    @property
    def closed(self) -> bool:
        """True if the file is closed; libraries that write to a file ask for it."""
        return self._file.closed

    def flush(self) -> None:
        """Hand what is buffered to the operating system."""
        self._file.flush()

    def put(self, text: str, rows: int = 0) -> None:
        """Add text that holds so many rows."""
        self.write(text.encode())
        self.rows += rows

    def close(self) -> dict[str, Any]:
        """Rename the file to its place, and return its line in the manifest, without the name."""
        self._file.close()
        self._part.rename(self.path)
        return {"rows": self.rows, "bytes": self.size, "sha256": self._digest.hexdigest()}

    def abandon(self) -> None:
        """Leave nothing of the file."""
        # Closing writes what is buffered, for which a full disk has no room: the file goes too.
        with suppress(OSError):
            self._file.close()
        self._part.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


class ExportFiles:
    """The files of one export. What a failed one left can be taken away, and nothing else."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if it is missing. Raises BadInput unless it is new or empty."""
        try:
            if folder.is_dir() and any(folder.iterdir()):
                raise BadInput(_("%(folder)s is not empty; name a new or an empty folder") % {"folder": folder})
            self._made = [] if folder.is_dir() else [folder]
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            words = _("%(folder)s cannot be written: %(error)s")
            raise BadInput(words % {"folder": folder, "error": error.strerror}) from None
        self.folder = folder
        self._open: dict[str, ExportOutput] = {}
        self.written: list[dict[str, Any]] = []

    def open(self, name: str) -> ExportOutput:
        """Begin a file; `name` may hold a folder."""
        path = self.folder / name
        if not path.parent.exists():
            path.parent.mkdir()
            self._made.append(path.parent)
        self._open[name] = output = ExportOutput(path)
        return output

    def close(self) -> None:
        """Put every file in its place, and list it in `written` in the order of beginning."""
        for name, output in self._open.items():
            self.written.append({"name": name, **output.close()})

    def discard(self) -> None:
        """Remove the files, the manifest and the folders made for them."""
        for output in self._open.values():
            output.abandon()
        for name in (f".{MANIFEST}.part", MANIFEST):
            (self.folder / name).unlink(missing_ok=True)
        for folder in reversed(self._made):
            folder.rmdir()


def write_rows(
    files: ExportFiles,
    form: Format,
    batches: Iterable[Sequence[Row]],
    progress: Callable[[int], None] = lambda rows: None,
) -> Counts:
    """Stream the rows into the format's file; `progress` gets the rows so far after each batch."""
    queries, last = 0, None
    counted: dict[str, Counter[str]] = {name: Counter() for name in form.counted}
    output = files.open(form.file)
    output.put(form.header)
    assert form.line is not None
    for batch in batches:
        output.put("".join(map(form.line, batch)), len(batch))
        for name, place in form.counted.items():
            counted[name].update(str(row[place]) for row in batch)
        for row in batch:
            queries, last = queries + (row[0] != last), row[0]
        progress(output.rows)
    files.close()
    counts = {name: dict(sorted(counter.items())) for name, counter in counted.items()}
    return {"rows": output.rows, "queries": queries, **counts}
