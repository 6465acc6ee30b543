"""The pending-answer log: answers between arrival and commit, in files under VAR for each worker process.

What is written to a file survives a SIGKILL of the process without an fsync, so an answer is safe
microseconds after its last byte came; fsync is added while PostgreSQL is away. A file is locked
while its process lives. A worker recovers the files of dead processes before it claims pairs, so no
answer in them is paid for again. Recovering a file twice is safe: attempts get their ids when they
are sent, and only those of the current lease count.
"""

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOM = 32_000_000  # Bytes after which a new file begins; a full one is deleted once all of its answers are committed.


@dataclass(slots=True)
class Segment:
    """A file of the log."""

    path: Path
    file: int
    size: int = 0
    waiting: int = 0  # Answers in the file that are not committed yet.


class PendingAnswerLog:
    """The log's files of this process. `keep` and `done` run in the event loop's thread, `sync` in the writer's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self.number = 0
        self.segments: list[Segment] = []
        self.durable = False
        self.lock = threading.Lock()

    def keep(self, line: bytes) -> Segment:
        """Append a line, and return its file, to pass to `done` after the commit. Raises OSError on a full disk."""
        # A new file from time to time, since a file is deleted only when all of its answers are committed.
        if not self.segments or self.segments[-1].size > ROOM:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{self.name}-{self.number}.jsonl"
            # Created under another name and renamed once locked: `orphaned_files` never sees it unlocked.
            temporary = path.with_suffix(".new")
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            temporary.rename(path)
            self.number += 1
            with self.lock:
                self.segments.append(Segment(path, file))
        segment = self.segments[-1]
        # One write for a line: with O_APPEND it follows the last one without a gap.
        size = os.write(segment.file, line + b"\n")
        if size <= len(line):
            # Half a line would spoil the next one.
            os.ftruncate(segment.file, segment.size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        segment.size += size
        segment.waiting += 1
        if self.durable:
            os.fsync(segment.file)
        return segment

    def done(self, segment: Segment) -> None:
        """Note that an answer is committed; delete or empty a file whose answers all are."""
        segment.waiting -= 1
        if segment.waiting:
            return
        # The file in use is emptied and not deleted: a new file for each answer would cost more.
        if segment is self.segments[-1]:
            os.ftruncate(segment.file, 0)
            segment.size = 0
        else:
            self._end(segment)

    def sync(self) -> None:
        """Write with fsync until `relax`, so that answers survive a crash of the machine while PostgreSQL is away."""
        self.durable = True
        with self.lock:
            for segment in self.segments:
                os.fsync(segment.file)

    def relax(self) -> None:
        """Write without fsync again: PostgreSQL is back."""
        self.durable = False

    def close(self) -> None:
        """Delete files without pending answers; leave the others to the next worker that claims pairs."""
        for segment in list(self.segments):
            if segment.waiting:
                os.close(segment.file)
            else:
                self._end(segment)

    def _end(self, segment: Segment) -> None:
        segment.path.unlink(missing_ok=True)
        with self.lock:
            self.segments.remove(segment)
            os.close(segment.file)


@contextlib.contextmanager
def orphaned_files(folder: Path) -> Iterator[list[Path]]:
    """Yield the files of dead processes, to one process at a time, which deletes those that it recovers."""
    # No lock if there is nothing to do: this runs before each claim.
    if not any(folder.glob("*.jsonl")):
        yield []
        return
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield [path for path in sorted(folder.glob("*.jsonl")) if _is_orphaned(path)]


def _is_orphaned(path: Path) -> bool:
    """Return whether the process that wrote the file is dead, and its lock free."""
    try:
        with path.open("rb") as file:
            # A shared lock without waiting: it fails exactly while the writer lives.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # locked, or deleted meanwhile
        return False
    return True
