"""Files of an export: written under a temporary name, renamed when complete, with their hash. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from annotation.exports.formats import Format, Row
from annotation.exports.ratings.documents import JsonDocument, RatedPair
from corpus.errors import BadInput

MANIFEST = "manifest.json"
Counts = dict[str, Any]  # Number of rows and of queries, and of rows by the values that the format counts.
Progress = Callable[[int], None]


class ExportOutput:
    """A file that is written under a temporary name until `close`, and its hash."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self.size = 0
        self._digest = sha256()
        self._part = path.with_name(f".{path.name}.part")
        self._file = self._part.open("xb")

    def write(self, data: bytes) -> int:
        """Write bytes, and return their number."""
        self._digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    @property
    def closed(self) -> bool:
        """Whether the file is closed, for libraries that write to it."""
        return self._file.closed

    def flush(self) -> None:
        """Flush the buffer of the file."""
        self._file.flush()

    def put(self, text: str, rows: int = 0) -> None:
        """Write text with this number of rows."""
        self.write(text.encode())
        self.rows += rows

    def close(self) -> dict[str, Any]:
        """Rename the file to its final name, and return its entry in the manifest, without the name."""
        self._file.close()
        self._part.rename(self.path)
        return {"rows": self.rows, "bytes": self.size, "sha256": self._digest.hexdigest()}

    def abandon(self) -> None:
        """Delete the file."""
        # Closing writes the buffer, which fails on a full disk.
        with suppress(OSError):
            self._file.close()
        self._part.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


class ExportFiles:
    """The files of an export. `discard` removes only what it has written."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if it is missing. Raises BadInput unless it is new or empty."""
        try:
            if folder.is_dir() and any(folder.iterdir()):
                raise BadInput(_("%(folder)s is not empty; name a new or an empty folder") % {"folder": folder})
            self._new_folders = [] if folder.is_dir() else [folder]
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            words = _("%(folder)s cannot be written: %(error)s")
            raise BadInput(words % {"folder": folder, "error": error.strerror}) from None
        self.folder = folder
        self._open: dict[str, ExportOutput] = {}
        self.written: list[dict[str, Any]] = []

    def open(self, name: str) -> ExportOutput:
        """Open a file; `name` may contain a folder."""
        path = self.folder / name
        if not path.parent.exists():
            path.parent.mkdir()
            self._new_folders.append(path.parent)
        self._open[name] = output = ExportOutput(path)
        return output

    def close(self) -> None:
        """Close all files, and list them in `written`, in the order in which they were opened."""
        for name, output in self._open.items():
            self.written.append({"name": name, **output.close()})

    def discard(self) -> None:
        """Remove the files, the manifest and the folders made for them."""
        for output in self._open.values():
            output.abandon()
        for name in (f".{MANIFEST}.part", MANIFEST):
            (self.folder / name).unlink(missing_ok=True)
        for folder in reversed(self._new_folders):
            folder.rmdir()


class _RowCounts:
    """Numbers of rows and of queries, and of rows by the values that the format counts."""

    def __init__(self, form: Format) -> None:
        self.form = form
        self.rows = self.queries = 0
        self._last_query: Any = None
        self._counters: dict[str, Counter[str]] = {name: Counter() for name in form.counted}

    def add(self, batch: Sequence[Row]) -> None:
        """Count the rows of a batch, which are in the order of their queries."""
        self.rows += len(batch)
        for name, position in self.form.counted.items():
            self._counters[name].update(str(row[position]) for row in batch)
        for row in batch:
            self.queries, self._last_query = self.queries + (row[0] != self._last_query), row[0]

    def describe(self) -> Counts:
        """Return the counts for the manifest."""
        counts = {name: dict(sorted(counter.items())) for name, counter in self._counters.items()}
        return {"rows": self.rows, "queries": self.queries, **counts}


def write_rows(
    files: ExportFiles, form: Format, batches: Iterable[Sequence[Row]], progress: Progress = lambda rows: None
) -> Counts:
    """Stream the rows into the format's file. `progress`: called with the number of rows so far, after each batch."""
    counts, output = _RowCounts(form), files.open(form.file)
    output.put(form.header)
    assert form.line is not None
    for batch in batches:
        output.put("".join(map(form.line, batch)), len(batch))
        counts.add(batch)
        progress(output.rows)
    files.close()
    return counts.describe()


def write_document(
    files: ExportFiles,
    form: Format,
    document: JsonDocument,
    batches: Iterable[Sequence[RatedPair]],
    progress: Progress = lambda rows: None,
) -> Counts:
    """Stream rated pairs into the format's file, one JSON document with a line or more for each query."""
    counts, output = _RowCounts(form), files.open(form.file)

    def read_pairs() -> Iterator[RatedPair]:
        for batch in batches:
            counts.add(batch)
            yield from batch
            progress(output.rows)

    output.put(document.beginning)
    for _key, group in groupby(read_pairs(), key=itemgetter(0)):
        pairs = list(group)
        output.put(("," if output.rows else "") + "\n" + document.describe(pairs), len(pairs))
    output.put(document.end)
    files.close()
    return counts.describe()
