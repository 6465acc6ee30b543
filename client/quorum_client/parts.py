"""Base classes of a collection's parts: addresses, downloads, and waiting for work."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from quorum_client.errors import QuorumError
from quorum_client.progress import ProgressBar
from quorum_client.transport import Transport


class Waitable(Protocol):
    """A record of work that ends."""

    def find_end(self) -> str | None:
        """Return an empty text for success, else what went wrong; None while it goes on."""

    def count_done(self) -> tuple[int, int]:
        """Return how much is done, and the total."""


Work = TypeVar("Work", bound=Waitable)
Row = TypeVar("Row")


class Part:
    """A part of a collection."""

    def __init__(self, transport: Transport, collection: str) -> None:
        self.transport = transport
        self.collection = collection

    def at(self, *parts: object) -> str:
        """Return the address of something in the collection."""
        return "/".join(["collections", self.collection, *map(str, parts)])

    def download_files(
        self, at: Sequence[object], names: Sequence[str], folder: Path, *, progress: bool
    ) -> Sequence[Path]:
        """Download files below an address into a folder, and return where they lie."""
        paths = []
        for name in names:
            path = folder / name
            # A name comes from the server and may hold `..`, or lead through a link.
            if not path.resolve().is_relative_to(folder.resolve()):
                raise ValueError(f"{name} would lie outside of {folder}")
            path.parent.mkdir(parents=True, exist_ok=True)
            paths.append(self.transport.download(self.at(*at, name), path, progress=progress))
        return paths


class Jobs(Part, Generic[Row, Work]):
    """Background work that can be waited for. Lists are read page by page."""

    title: str
    path: str
    """The address of the list below that of the collection."""
    row: type[Row]
    """What `list` yields."""
    record: type[Work]
    """What `read` returns."""

    def list(self) -> Iterator[Row]:
        """List all, the oldest first."""
        return self.transport.iterate(self.row, self.at(self.path))

    def read(self, number: int) -> Work:
        """Read how far one is."""
        return self.transport.read(self.record, self.at(self.path, number))

    def wait(self, number: int, *, progress: bool = False, every: float = 1.0, timeout: float | None = None) -> Work:
        """Wait for its end, asking every few seconds. Raises QuorumError where it ends badly, and TimeoutError."""
        # Monotonic: a clock that is set meanwhile must not end the wait.
        ends = None if timeout is None else time.monotonic() + timeout
        with ProgressBar(f"{self.title} {number}", is_shown=progress) as bar:
            while True:
                work = self.read(number)
                # Before the end is looked at, so that a bar that is done stands at its full length.
                bar.show(*work.count_done())
                end = work.find_end()
                if end:
                    raise QuorumError(f"{self.title} {number}: {end}")
                if end is not None:
                    return work
                # The next answer would come too late, so there is nothing more to wait for.
                if ends is not None and time.monotonic() + every > ends:
                    raise TimeoutError(f"{self.title} {number} has not ended in {timeout:g} seconds")
                time.sleep(every)

    def act(self, number: int, act: str) -> Work:
        """Do one of the acts that its address has, as `cancel`."""
        return self.transport.post(self.record, self.at(self.path, number, act))
