"""Base classes of the parts of a collection: their addresses, downloads, and waiting for work to end."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, TypeVar

from quorum_client._sync.transport import Transport
from quorum_client.errors import QuorumError
from quorum_client.progress import ProgressBar

T = TypeVar("T")


class Resource:
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
        found = []
        for name in names:
            path = _place_of(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            found.append(self.transport.download(self.at(*at, name), path, progress=progress))
        return found


def _place_of(folder: Path, name: str) -> Path:
    """Return where a file comes to lie, which is in the folder whatever the server calls it."""
    # A name comes from the server and may hold `..`, or lead through a link.
    if not (folder / name).resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{name} would lie outside of {folder}")
    return folder / name


class Jobs(Resource, Generic[T]):
    """Work that goes on in the background, and that can be waited for."""

    title = ""

    def read(self, number: int) -> T:
        """Read the progress of a piece of work by its number."""
        raise NotImplementedError

    def find_end(self, found: T) -> str | None:
        """Return how work ended: an empty text for success, else what went wrong; None while it goes on."""
        raise NotImplementedError

    def count_done(self, found: T) -> tuple[int, int]:
        """Return how much is done, and the total; 0 for a total that is not known."""
        raise NotImplementedError

    def wait(self, number: int, *, progress: bool = False, every: float = 1.0, timeout: float | None = None) -> T:
        """Wait for its end, asking every few seconds. Raises QuorumError where it ends badly, and TimeoutError."""
        # Monotonic: a clock that is set meanwhile must not end the wait.
        ends = None if timeout is None else time.monotonic() + timeout
        with ProgressBar(f"{self.title} {number}", is_shown=progress) as bar:
            while True:
                found = self.read(number)
                # Before the end is looked at, so that a bar that is done stands at its full length.
                bar.show(*self.count_done(found))
                end = self.find_end(found)
                if end:
                    raise QuorumError(f"{self.title} {number}: {end}")
                if end is not None:
                    return found
                # The next answer would come too late, so there is nothing more to wait for.
                if ends is not None and time.monotonic() + every > ends:
                    raise TimeoutError(f"{self.title} {number} has not ended in {timeout:g} seconds")
                time.sleep(every)


def end_of_job(state: str, error: str, ready: str = "ready") -> str | None:
    """Return the end of a job by its state, as `find_end` does."""
    # Jobs and runs are `waiting`, trainings `queued`, exports `making`; the rest of the states are ends.
    if state in ("waiting", "running", "queued", "making"):
        return None
    return "" if state == ready else error or state
