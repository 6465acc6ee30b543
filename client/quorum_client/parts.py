"""Base classes of the parts of a collection: addresses, downloads, and waiting for jobs."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from quorum_client.errors import QuorumError
from quorum_client.progress import ProgressBar
from quorum_client.transport import Transport


class Waitable(Protocol):
    """A record of work in the background."""

    def find_end(self) -> str | None:
        """Return "" for success, else the problem; None while the work continues."""

    def count_done(self) -> tuple[int, int]:
        """Return the amount of work done, and the total."""


Work = TypeVar("Work", bound=Waitable)
Row = TypeVar("Row")


class Part:
    """A part of a collection."""

    def __init__(self, transport: Transport, collection: str) -> None:
        self.transport = transport
        self.collection = collection

    def at(self, *parts: object) -> str:
        """Return the path of an object in the collection."""
        return "/".join(["collections", self.collection, *map(str, parts)])

    def download_files(
        self, at: Sequence[object], names: Sequence[str], folder: Path, *, progress: bool
    ) -> Sequence[Path]:
        """Download the files below a path into a folder; return their paths."""
        paths = []
        for name in names:
            path = folder / name
            # Names come from the server and may contain `..` or lead through a link.
            if not path.resolve().is_relative_to(folder.resolve()):
                raise ValueError(f"{name} would lie outside of {folder}")
            path.parent.mkdir(parents=True, exist_ok=True)
            paths.append(self.transport.download(self.at(*at, name), path, progress=progress))
        return paths


class Jobs(Part, Generic[Row, Work]):
    """Background work that can be waited for. Lists are read page by page."""

    title: str
    path: str
    """Path of the list, below that of the collection."""
    row: type[Row]
    """Type of the records of `list`."""
    record: type[Work]
    """Type of the record of `read`."""

    def list(self) -> Iterator[Row]:
        """List all, the oldest first."""
        return self.transport.iterate(self.row, self.at(self.path))

    def read(self, number: int) -> Work:
        """Read one with its progress."""
        return self.transport.read(self.record, self.at(self.path, number))

    def wait(self, number: int, *, progress: bool = False, every: float = 1.0, timeout: float | None = None) -> Work:
        """Wait for the end of one, polling `every` seconds. Raises QuorumError where it fails, and TimeoutError."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with ProgressBar(f"{self.title} {number}", is_shown=progress) as bar:
            while True:
                work = self.read(number)
                # Before the check for the end, so that a finished bar is full.
                bar.show(*work.count_done())
                end = work.find_end()
                if end:
                    raise QuorumError(f"{self.title} {number}: {end}")
                if end is not None:
                    return work
                # The next response would come too late.
                if deadline is not None and time.monotonic() + every > deadline:
                    raise TimeoutError(f"{self.title} {number} has not ended in {timeout:g} seconds")
                time.sleep(every)

    def act(self, number: int, act: str) -> Work:
        """Perform an action on one, such as `cancel`."""
        return self.transport.post(self.record, self.at(self.path, number, act))
