"""A job's folder on several machines: what a trainer needs is fetched, what it makes is published while it works."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db import DatabaseError, connection

from jobs.leases import Lease
from store.files import delete, fetch, is_shared, publish
from training.jobs.folder import JobFolder
from training.models import Job

PUBLISH_S = 5.0
# What pages show of a job that runs; it grows all the time.
NEWS = ("state.json", "metrics.jsonl", "log.txt")
# Not published with the rest: the request names paths of one machine, so each writes its own;
# checkpoints are published one by one; bases, tokens and the part of a set are made again.
APART = ("job.json", "checkpoints", "bases", "tokens", "data")

logger = logging.getLogger(__name__)


def named_paths(options: dict[str, Any]) -> Iterator[Path]:
    """Yield files and folders that a job's options name: its training set, base, models."""
    for one in (options.get("data"), options.get("base"), *(options.get("models") or {}).values()):
        # What is no path (tiny:qwen3, a hub id) is not absolute; the subprocess looks for it.
        if one and Path(str(one)).is_absolute():
            yield Path(str(one))


def fetch_needed(job: Job, folder: JobFolder) -> None:
    """Fetch the job's folder, with the checkpoints of an earlier worker, and what it names."""
    fetch(folder.path, newest=True)
    for path in named_paths(job.options):
        fetch(path)
    if is_shared() and not (folder.path / "job.json").exists():
        folder.ask({"kind": job.kind, "device": job.device, **job.options})


def publish_results(folder: JobFolder) -> None:
    """Publish what a job made, but for its model and its checkpoints."""
    publish(folder.path, leave_out=APART, changing=True)


class FolderPublisher:
    """A context in which a thread publishes the subprocess's files for other machines."""

    def __init__(self, lease: Lease, folder: JobFolder) -> None:
        self.lease, self.folder = lease, folder
        self.published: set[int] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._publish_until_over, name="publisher", daemon=True)

    def __enter__(self) -> "FolderPublisher":
        if is_shared():
            # From here on this machine's files count, and no page replaces them by the store's.
            self._publish_news()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if is_shared():
            self._thread.join()

    def _publish_until_over(self) -> None:
        try:
            over = False
            while not over:
                over = self._over.wait(PUBLISH_S)
                # Whoever lost the job leaves the files to its new holder.
                if self.lease.is_revoked():
                    return
                try:
                    self._publish_progress()
                # The store or the database is away, or the disk is full: the next try may succeed.
                except (OSError, DatabaseError) as error:
                    logger.warning("files of %s cannot be published: %s", self.lease.job, error)
        finally:
            connection.close()

    def _publish_news(self) -> None:
        for name in NEWS:
            if (self.folder.path / name).is_file():
                publish(self.folder.path / name, changing=True)

    def _publish_progress(self) -> None:
        fresh = sorted(set(self.folder.steps()) - self.published)
        # What was measured up to a checkpoint is there before the checkpoint is.
        publish_results(self.folder) if fresh else self._publish_news()
        for step in fresh:
            publish(self.folder.checkpoint(step))
            self.published.add(step)
        # Those removed meanwhile go too, also where that happened while they were read.
        for step in self.published - set(self.folder.steps()):
            delete(self.folder.checkpoint(step))
            self.published.discard(step)
