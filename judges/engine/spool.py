"""Finished answers that wait for PostgreSQL: an fsynced file in VAR, replayed when a worker starts.

One file for each worker process, locked while it lives. Replaying is safe to do twice: attempts have their ids from
the start, and outcomes check the fence.
"""

import fcntl
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from judges.engine.rows import Attempted, Decided, Ended


def dump(ended: Ended) -> str:
    """One line of JSON; bytes in base 64."""
    kind = "attempt" if isinstance(ended, Attempted) else "outcome"
    record: dict[str, Any] = {"kind": kind, "row": ended.row}
    if isinstance(ended, Attempted):
        record |= {"messages": b64encode(ended.messages).decode(), "raw": b64encode(ended.raw).decode()}
    return json.dumps(record)


def load(line: str) -> Ended:
    """The record of a line. Raises ValueError for a line that was cut off."""
    record = json.loads(line)
    if record["kind"] == "attempt":
        return Attempted(record["row"], b64decode(record["messages"]), b64decode(record["raw"]))
    return Decided(record["row"])


class Spool:
    """The file of this process; it exists only while something waits in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / f"{os.getpid()}-{os.urandom(4).hex()}.jsonl"
        self.file: IO[str] | None = None

    def keep(self, ended: list[Ended]) -> None:
        """Append and fsync."""
        if not ended:
            return
        if self.file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.file = self.path.open("a", encoding="utf-8")
            fcntl.flock(self.file, fcntl.LOCK_EX)
        self.file.writelines(dump(one) + "\n" for one in ended)
        self.file.flush()
        os.fsync(self.file.fileno())

    def clear(self) -> None:
        """Everything in it has been committed."""
        if self.file is not None:
            self.path.unlink(missing_ok=True)
            self.file.close()
            self.file = None

    def orphans(self) -> Iterator[tuple[Path, list[Ended]]]:
        """Files of processes that are gone, with what they hold; the caller unlinks a file once it is committed."""
        for path in sorted(self.folder.glob("*.jsonl")):
            if path == self.path:
                continue
            with path.open(encoding="utf-8") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    continue
                yield path, list(_whole_lines(file))


def _whole_lines(file: IO[str]) -> Iterator[Ended]:
    for line in file:
        try:
            yield load(line)
        except (ValueError, KeyError):  # the last line, cut off by a kill: its answer was still in flight
            continue
