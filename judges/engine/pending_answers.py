"""The pending-answer log: answers between arrival and commit, in a file in VAR for each worker process.

What was written to a file outlives a SIGKILL of the process without an fsync, so an answer is safe
microseconds after its last byte came; fsync is added while PostgreSQL is away. The file is locked
while its process lives. Whoever claims work takes over the files of dead processes first, so no
answer in them is paid for again. Taking one over twice is safe: attempts have their ids from the
start, and only the present holder's count.
"""

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOM = 32_000_000  # Bytes after which a new file begins; a full one goes as soon as all that is in it is committed.


@dataclass(slots=True)
class Segment:
    """File of the log. `waiting` counts its answers that are not committed."""

    path: Path
    file: int
    size: int = 0
    waiting: int = 0  # Answers in it that are not committed yet.


class PendingAnswerLog:
    """The log's files of this process. `keep` and `done` belong to the loop's thread, `sync` to the writer's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self.number = 0
        self.segments: list[Segment] = []
        self.durable = False
        self.lock = threading.Lock()

    def keep(self, line: bytes) -> Segment:
        """Append a line, and return what `done` gets once the answer is committed. Raises OSError on a full disk."""
        # A new file now and then, since a file goes only when all of its answers are committed.
        if not self.segments or self.segments[-1].size > ROOM:
            self._begin()
        segment = self.segments[-1]
        # One write for a line: with O_APPEND it lands whole behind the last one.
        written = os.write(segment.file, line + b"\n")
        if written <= len(line):
            # Half a line would spoil the next one.
            os.ftruncate(segment.file, segment.size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        segment.size += written
        segment.waiting += 1
        if self.durable:
            os.fsync(segment.file)
        return segment

    def done(self, segment: Segment) -> None:
        """Note a committed answer; a file without others goes, or is emptied."""
        segment.waiting -= 1
        if segment.waiting:
            return
        # The file in use is emptied, not removed: opening another one for each answer would cost more than it.
        if segment is self.segments[-1]:
            os.ftruncate(segment.file, 0)
            segment.size = 0
        else:
            self._end(segment)

    def sync(self) -> None:
        """Write with fsync until `relax`: answers outlive the machine without PostgreSQL."""
        self.durable = True
        with self.lock:
            for segment in self.segments:
                os.fsync(segment.file)

    def relax(self) -> None:
        """Write without fsync again: PostgreSQL is back."""
        self.durable = False

    def close(self) -> None:
        """Remove files with nothing in them; others are left to whoever claims next."""
        for segment in list(self.segments):
            if segment.waiting:
                os.close(segment.file)
            else:
                self._end(segment)

    def _begin(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.name}-{self.number}.jsonl"
        # Made under another name, renamed once locked: `orphaned_files` never sees it unlocked.
        unnamed = path.with_suffix(".new")
        file = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        unnamed.rename(path)  # nobody sees it without its lock
        self.number += 1
        with self.lock:
            self.segments.append(Segment(path, file))

    def _end(self, segment: Segment) -> None:
        segment.path.unlink(missing_ok=True)
        with self.lock:
            self.segments.remove(segment)
            os.close(segment.file)


@contextlib.contextmanager
def orphaned_files(folder: Path) -> Iterator[list[Path]]:
    """Files of dead processes, for this one alone. Unlink what is taken over."""
    # Without a lock file where there is nothing to do: this runs before each claim.
    if not any(folder.glob("*.jsonl")):
        yield []
        return
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield [path for path in sorted(folder.glob("*.jsonl")) if _is_left(path)]


def _is_left(path: Path) -> bool:
    """Return whether the process that wrote the file is gone: nobody holds its lock."""
    try:
        with path.open("rb") as file:
            # A shared lock without waiting: it fails exactly while the writer lives.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # locked, or gone meanwhile
        return False
    return True
