"""Files in and out: imports, exports, and their downloads."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from quorum_client._sync.resources import Jobs, Resource, end_of_job
from quorum_client.answers import build_body
from quorum_client.models import ExportIn, ExportOut, ImportOptionsIn, ImportOut, QueryListOut


class Imports(Jobs[ImportOut]):
    """Imports of files: `wait` waits for the check, and for the import once it was started."""

    title = "import"

    def run(
        self,
        files: Iterable[str | Path],
        options: ImportOptionsIn | None = None,
        *,
        progress: bool = False,
        every: float = 1.0,
        timeout: float | None = None,
        **fields: Any,
    ) -> ImportOut:
        """Upload, check and import, and wait for the end: `bm25`, `empty`, `update`, `kinds`, `columns`.

        `timeout`: seconds for the check, and for the import. Raises QuorumError, which says what is wrong with the
        files; then nothing was changed.
        """
        waiting: dict[str, Any] = {"progress": progress, "every": every, "timeout": timeout}
        number = (self.create([Path(file) for file in files], progress=progress)).number
        # Before the first wait: the check that is waited for is then the one with these options.
        if options is not None or fields:
            self.correct(number, options, **fields)
        self.wait(number, **waiting)
        self.start(number)
        return self.wait(number, **waiting)

    def list(self) -> Iterator[ImportOut]:
        """List the imports, the oldest first."""
        return self.transport.iterate(ImportOut, self.at("imports"))

    def create(self, files: Sequence[Path], *, progress: bool = False) -> ImportOut:
        """Upload files part by part, so that a lost connection costs a part; a worker checks what they hold."""
        send = self.transport.upload_parts
        numbers = [send(self.at("uploads"), file, progress=progress) for file in files]
        return self.transport.post(ImportOut, self.at("uploads", "import"), {"uploads": numbers})

    def read(self, number: int) -> ImportOut:
        """Read how far an import, or its check, is."""
        return self.transport.read(ImportOut, self.at("imports", number))

    def correct(self, number: int, options: ImportOptionsIn | None = None, **fields: Any) -> ImportOut:
        """Say what the files hold and how they are imported; a worker checks again."""
        body = build_body(ImportOptionsIn, options, fields)
        return self.transport.post(ImportOut, self.at("imports", number, "options"), body)

    def start(self, number: int) -> ImportOut:
        """Start an import whose check is ready."""
        return self.transport.post(ImportOut, self.at("imports", number, "start"))

    def cancel(self, number: int) -> ImportOut:
        """Cancel an import."""
        return self.transport.post(ImportOut, self.at("imports", number, "cancel"))

    def resume(self, number: int) -> ImportOut:
        """Do again what was cancelled or failed: the check, or the import."""
        return self.transport.post(ImportOut, self.at("imports", number, "go-on"))

    def find_end(self, found: ImportOut) -> str | None:
        """Say how the import, or its check, ended."""
        return end_of_job(found.state, found.error)

    def count_done(self, found: ImportOut) -> tuple[int, int]:
        """Count the rows that were read."""
        return found.done, found.total


class QueryLists(Resource):
    """Kept lists of queries: they enter no training set, unless it names the list as a split."""

    def list(self) -> Sequence[QueryListOut]:
        """List them, by name."""
        return self.transport.read(tuple[QueryListOut, ...], self.at("query-lists"))

    def read(self, name: str) -> QueryListOut:
        """Read one."""
        return self.transport.read(QueryListOut, self.at("query-lists", name))

    def keep(self, name: str, query_ids: Sequence[str]) -> QueryListOut:
        """Keep these queries under the name, in place of those that it had."""
        return self.transport.put(QueryListOut, self.at("query-lists", name), {"query_ids": [*query_ids]})

    def delete(self, name: str, *, if_match: QueryListOut | None = None) -> None:
        """Delete a list."""
        self.transport.delete(self.at("query-lists", name), if_match)


class Exports(Jobs[ExportOut]):
    """Exports of labels, judgments and training sets, each of one moment."""

    title = "export"

    def list(self) -> Iterator[ExportOut]:
        """List the exports, the oldest first."""
        return self.transport.iterate(ExportOut, self.at("exports"))

    def create(self, asked: ExportIn | None = None, **fields: Any) -> ExportOut:
        """Make an export (`format`, `origins`, `set` ...). A large one is made by a worker: wait for it."""
        return self.transport.post(ExportOut, self.at("exports"), build_body(ExportIn, asked, fields))

    def read(self, number: int) -> ExportOut:
        """Read an export with its manifest."""
        return self.transport.read(ExportOut, self.at("exports", number))

    def download(
        self, number: int, folder: str | Path, *, files: Sequence[str] | None = None, progress: bool = False
    ) -> Sequence[Path]:
        """Download the files of an export, or some of them, into a folder, and return where they lie."""
        # Asked for when they are needed: the names of a large export are known only when it is ready.
        names = (self.read(number)).files if files is None else files
        return self.download_files(("exports", number, "files"), names, Path(folder), progress=progress)

    def run(self, asked: ExportIn | None = None, *, folder: str | Path, **options: Any) -> Sequence[Path]:
        """Make an export, wait for it and download its files; `progress`, `every` and `timeout` as `wait` has them."""
        waiting = {name: options.pop(name) for name in ("progress", "every", "timeout") if name in options}
        made = self.create(asked, **options)
        self.wait(made.number, **waiting)
        return self.download(made.number, folder, progress=waiting.get("progress", False))

    def find_end(self, found: ExportOut) -> str | None:
        """Say how the export ended."""
        return end_of_job(found.state, found.error)

    def count_done(self, found: ExportOut) -> tuple[int, int]:
        """Count exports: how far one is, is not known."""
        # An export does not say how far it is: the bar jumps from nothing to all.
        return int(found.state == "ready"), 1
