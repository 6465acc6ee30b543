"""A job's folder: what was asked, how far it is, what it measured (pure; docs/adr/0012). One writer, many readers."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from charts.translation import gettext_noop as _
from corpus.errors import BadInput
from training.recipes.refusals import RefusedTraining

FINISHED, FAILED, REFUSED, CANCELLED = 0, 1, 2, 3  # Exit codes of the process that works on a job.


class TrainingCancelled(Exception):
    """The process was asked to end; what it has is saved."""


class JobFolder:
    """The files of a job: job.json in; state.json, metrics.jsonl, log.txt and checkpoints/ out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = path / "metrics.jsonl"
        self.log = path / "log.txt"
        self.checkpoints = path / "checkpoints"

    @property
    def job(self) -> dict[str, Any]:
        """The request that the job was begun with. Raises BadInput when it cannot be read."""
        try:
            return dict(json.loads((self.path / "job.json").read_text()))
        except (OSError, ValueError) as error:
            raise BadInput(f"{self.path / 'job.json'} cannot be read: {error}") from error

    def ask(self, job: Mapping[str, Any]) -> None:
        """Write job.json, before anybody works on it."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path / "job.json", json.dumps(dict(job), indent=1))

    @property
    def state(self) -> dict[str, Any]:
        """The last state that the working process wrote; {} before the first."""
        try:
            return dict(json.loads((self.path / "state.json").read_text()))
        except (OSError, ValueError):
            return {}

    def say(self, **changes: Any) -> None:
        """Change some of the state."""
        write_atomically(self.path / "state.json", json.dumps({**self.state, **changes}))

    def add(self, line: Mapping[str, Any]) -> None:
        """Write one more line of metrics."""
        with self.metrics.open("a") as file:
            file.write(json.dumps(dict(line)) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        """Return all whole lines of metrics, in their order."""
        return read_lines(self.metrics) if self.metrics.exists() else []

    def tail(self, lines: int) -> list[str]:
        """Return the end of the log."""
        try:
            with self.log.open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - 20_000))
                return file.read().decode(errors="replace").splitlines()[-lines:]
        except OSError:
            return []

    def last_log_line(self) -> str:
        """Return the last line of the log."""
        lines = [line for line in self.tail(20) if line.strip()]
        return lines[-1].strip()[:500] if lines else "no error output"

    def keep_until(self, step: int) -> None:
        """Forget what was measured after this step: it is done again."""
        kept = [line for line in self.lines() if line["step"] <= step]
        write_atomically(self.metrics, "".join(json.dumps(line) + "\n" for line in kept))

    def checkpoint(self, step: int) -> Path:
        """Return where the checkpoint of a step lies."""
        return self.checkpoints / f"checkpoint-{step}"

    def steps(self) -> list[int]:
        """Return the steps of whole checkpoints, oldest first."""
        # trainer.json is written last: a folder without it was cut off.
        found = self.checkpoints.glob("checkpoint-*") if self.checkpoints.is_dir() else []
        return sorted(int(one.name.removeprefix("checkpoint-")) for one in found if (one / "trainer.json").exists())

    def prune(self, keep: set[int]) -> None:
        """Remove checkpoints that nobody will ask for."""
        for step in set(self.steps()) - keep:
            shutil.rmtree(self.checkpoint(step), ignore_errors=True)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the documents of a file of JSON lines."""
    # A line without its end is still being written, or its writer was killed.
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def count_whole_lines(path: Path) -> int:
    """Count the lines that a killed process left whole; cut off a torn one."""
    if not path.exists():
        return 0
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    # Cut off, so that what is appended next begins a line.
    if len(whole) != len(data):
        os.truncate(path, len(whole))
    return whole.count(b"\n")


@contextmanager
def write_folder(folder: Path) -> Iterator[Path]:
    """Context manager that gives a folder to write into.

    It is renamed once it is whole and on the disk; a failure leaves nothing.
    """
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        # Contents on the disk before the name: after a crash the folder is whole or not there.
        for path in part.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check_new(out: Path) -> None:
    """Raise RefusedTraining for a folder that holds something: models are never written over."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RefusedTraining(_("%(out)s is not empty: name a new or an empty folder"), out=out)


def write_atomically(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    # The process id keeps two writers apart; a rename is seen whole or not at all.
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text)
    part.replace(path)
