"""A job's folder on several machines: a trainer fetches the files it needs, and publishes its own as it works."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db import DatabaseError, connection

from jobs.leases import Lease
from store.files import delete, fetch, is_shared, publish
from training.models import Job
from training.recipes.job_folder import JobFolder

PUBLISH_S = 5.0
# The files of a running job that pages show, which change all the time.
PROGRESS_FILES = ("state.json", "metrics.jsonl", "log.txt")
# Not published with the rest: the request contains paths of one machine, so each writes its own; checkpoints are
# published one by one; bases, tokens and the subset of a set can be made again.
LEFT_OUT = ("job.json", "checkpoints", "bases", "tokens", "data")

logger = logging.getLogger(__name__)


def named_paths(options: dict[str, Any]) -> Iterator[Path]:
    """Yield the paths in a job's options: its training set, base and models."""
    for name in (options.get("data"), options.get("base"), *(options.get("models") or {}).values()):
        # Other names (tiny:qwen3, a hub id) are not absolute; the subprocess finds them.
        if name and Path(str(name)).is_absolute():
            yield Path(str(name))


def fetch_needed(job: Job, folder: JobFolder) -> None:
    """Fetch the job's folder, with the checkpoints of an earlier worker, and the paths in its options."""
    fetch(folder.path, newest=True)
    for path in named_paths(job.options):
        fetch(path)
    if is_shared() and not (folder.path / "job.json").exists():
        folder.write_request({"kind": job.kind, "device": job.device, **job.options})


def publish_results(folder: JobFolder) -> None:
    """Publish the files of a job, except its model and its checkpoints."""
    publish(folder.path, leave_out=LEFT_OUT, changing=True)


class FolderPublisher:
    """A context in which a thread publishes the subprocess's files to other machines."""

    def __init__(self, lease: Lease, folder: JobFolder) -> None:
        self.lease, self.folder = lease, folder
        self.published: set[int] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._publish_until_over, name="publisher", daemon=True)

    def __enter__(self) -> "FolderPublisher":
        if is_shared():
            # Published first, so that no page on this machine replaces its files with older ones from the store.
            self._publish_progress_files()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if is_shared():
            self._thread.join()

    def _publish_until_over(self) -> None:
        try:
            is_over = False
            while not is_over:
                is_over = self._over.wait(PUBLISH_S)
                # After losing the lease, the files are left to the worker that has it now.
                if self.lease.is_revoked():
                    return
                try:
                    new_steps = sorted(set(self.folder.checkpoint_steps()) - self.published)
                    # The metrics up to a checkpoint are published before the checkpoint.
                    if new_steps:
                        publish_results(self.folder)
                    else:
                        self._publish_progress_files()
                    for step in new_steps:
                        publish(self.folder.checkpoint(step))
                        self.published.add(step)
                    # Checkpoints deleted since then, even while they were being published, are deleted in the store.
                    for step in self.published - set(self.folder.checkpoint_steps()):
                        delete(self.folder.checkpoint(step))
                        self.published.discard(step)
                # The store or the database does not respond, or the disk is full: the next attempt may succeed.
                except (OSError, DatabaseError) as error:
                    logger.warning("files of %s cannot be published: %s", self.lease.job, error)
        finally:
            connection.close()

    def _publish_progress_files(self) -> None:
        for name in PROGRESS_FILES:
            if (self.folder.path / name).is_file():
                publish(self.folder.path / name, changing=True)
