"""The folder of a job: its request, state, metrics, log and checkpoints (pure; docs/adr/0012).

One process writes to it, many may read.
"""

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

FINISHED, FAILED, REFUSED, CANCELLED = 0, 1, 2, 3  # Exit codes of a job's subprocess.


class TrainingCancelled(Exception):
    """The process was asked to stop, and has saved its state."""


class JobFolder:
    """The files of a job: the request job.json, and the results state.json, metrics.jsonl, log.txt, checkpoints/."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = path / "metrics.jsonl"
        self.log = path / "log.txt"
        self.checkpoints = path / "checkpoints"

    @property
    def job(self) -> dict[str, Any]:
        """The request of the job. Raises BadInput if it cannot be read."""
        try:
            return dict(json.loads((self.path / "job.json").read_text()))
        except (OSError, ValueError) as error:
            raise BadInput(f"{self.path / 'job.json'} cannot be read: {error}") from error

    def write_request(self, job: Mapping[str, Any]) -> None:
        """Write job.json, before the job starts."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path / "job.json", json.dumps(dict(job), indent=1))

    @property
    def state(self) -> dict[str, Any]:
        """The last state that the job's process wrote; {} before the first."""
        try:
            return dict(json.loads((self.path / "state.json").read_text()))
        except (OSError, ValueError):
            return {}

    def update_state(self, **changes: Any) -> None:
        """Change some fields of the state."""
        write_atomically(self.path / "state.json", json.dumps({**self.state, **changes}))

    def append_metrics(self, line: Mapping[str, Any]) -> None:
        """Append a line of metrics."""
        with self.metrics.open("a") as file:
            file.write(json.dumps(dict(line)) + "\n")

    def read_metrics(self) -> list[dict[str, Any]]:
        """Return all complete lines of metrics, in order."""
        return read_lines(self.metrics) if self.metrics.exists() else []

    def tail(self, lines: int) -> list[str]:
        """Return the last lines of the log."""
        try:
            with self.log.open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - 20_000))
                return file.read().decode(errors="replace").splitlines()[-lines:]
        except OSError:
            return []

    def last_log_line(self) -> str:
        """Return the last line of the log that is not blank."""
        lines = [line for line in self.tail(20) if line.strip()]
        return lines[-1].strip()[:500] if lines else "no error output"

    def truncate_metrics(self, step: int) -> None:
        """Delete the metrics after this step, which a resumed training will measure again."""
        lines = [line for line in self.read_metrics() if line["step"] <= step]
        write_atomically(self.metrics, "".join(json.dumps(line) + "\n" for line in lines))

    def checkpoint(self, step: int) -> Path:
        """Return the folder of the checkpoint of a step."""
        return self.checkpoints / f"checkpoint-{step}"

    def checkpoint_steps(self) -> list[int]:
        """Return the steps of complete checkpoints, in ascending order."""
        # trainer.json is written last, so a folder without it is incomplete.
        paths = self.checkpoints.glob("checkpoint-*/trainer.json") if self.checkpoints.is_dir() else []
        return sorted(int(path.parent.name.removeprefix("checkpoint-")) for path in paths)

    def prune_checkpoints(self, keep: set[int]) -> None:
        """Delete all checkpoints but those of these steps."""
        for step in set(self.checkpoint_steps()) - keep:
            shutil.rmtree(self.checkpoint(step), ignore_errors=True)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the documents in a JSON Lines file."""
    # A last line without a line feed is still being written, or its writer was killed.
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def count_whole_lines(path: Path) -> int:
    """Count the complete lines of a file, and remove an incomplete last line of a killed process."""
    if not path.exists():
        return 0
    data = path.read_bytes()
    complete = data[: data.rfind(b"\n") + 1]
    # Removed, so that the next process appends whole lines.
    if len(complete) != len(data):
        os.truncate(path, len(complete))
    return complete.count(b"\n")


@contextmanager
def write_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder to write into, which is renamed to `folder` when it is complete and on disk.

    A failure leaves nothing behind.
    """
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        # Synced before it is renamed: after a crash the folder is complete or does not exist.
        for path in part.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check_new(out: Path) -> None:
    """Raise RefusedTraining for a folder that is not empty: models are never overwritten."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RefusedTraining(_("%(out)s is not empty: name a new or an empty folder"), out=out)


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that readers see all of it or nothing."""
    # Under a temporary name with the process id, since two processes may write at once.
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text)
    part.replace(path)
