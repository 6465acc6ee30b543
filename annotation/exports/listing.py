"""The list of a collection's exports, with the progress and the files of each.

An export is stored as a Snapshot, whose manifest describes its files and their contents.
"""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from django.utils import timezone

from annotation.exports.files import MANIFEST
from annotation.exports.formats import ALL_FORMATS, Format
from annotation.exports.length_balance.charts import draw_balance
from annotation.exports.query_splits.parts import SPLITS
from annotation.exports.snapshots import exports_folder
from annotation.models.snapshots import Snapshot
from charts import Chart
from corpus.models import Collection
from jobs import background
from store.files import exists

EXPORT_TASK = "annotation.make_snapshot"
MAX_DURATION_WITHOUT_JOB = timedelta(minutes=10)  # An export that no job makes is given up after this time.
MAX_LISTED_EXPORTS = 50


class SplitCounts(NamedTuple):
    """The counts of a split of a training set, by name as the manifest has them."""

    split: str
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class ListedExport:
    """An export in the list on the page."""

    snapshot: Snapshot
    format: Format | None  # None if this version of Quorum no longer has the format.
    rows_so_far: int | None  # Rows that a job has written so far; None if no running job has reported any.
    is_lost: bool  # Whether the export was not finished and will not be, because nothing makes it any more.

    @property
    def is_in_progress(self) -> bool:
        """Whether the export is being made or waits for a worker."""
        return self.snapshot.state == Snapshot.State.MAKING and not self.is_lost

    @property
    def is_ready(self) -> bool:
        """Whether the files of the export are complete."""
        return self.snapshot.state == Snapshot.State.READY

    @property
    def splits(self) -> list[SplitCounts]:
        """Counts of the splits of a training set, in the order train, dev, test; an empty list for other exports."""
        counts_by_split: dict[str, dict[str, int]] = self.snapshot.manifest.get("counts", {}).get("splits", {})
        # PostgreSQL does not preserve the order of the manifest.
        return [SplitCounts(split, counts_by_split[split]) for split in SPLITS if split in counts_by_split]

    @property
    def balance_charts(self) -> list[Chart]:
        """Charts of length by score, before and after balancing; an empty list if the export is not balanced."""
        balance = self.snapshot.manifest.get("balance")
        if not balance:
            return []
        return [draw_balance(self.snapshot.number, balance, moment) for moment in ("before", "after")]

    @property
    def training_set_name(self) -> str:
        """The name by which training jobs find the export, which is that of its folder; empty if they cannot use it."""
        is_usable = self.is_ready and self.snapshot.format == "prism" and self.is_downloadable
        return Path(self.snapshot.folder).name if is_usable else ""

    @property
    def is_downloadable(self) -> bool:
        """Whether the files can be downloaded once they are complete."""
        return _is_in_exports_folder(self.snapshot)


def _is_in_exports_folder(snapshot: Snapshot) -> bool:
    """Return whether the files are in the collection's folder of exports; those of a command may be in another one."""
    return exports_folder(snapshot.collection) in Path(snapshot.folder).parents


def list_exports(collection: Collection) -> list[ListedExport]:
    """Return the collection's newest exports, newest first, at most MAX_LISTED_EXPORTS."""
    newest_first = (
        Snapshot.objects.filter(collection=collection).select_related("made_by", "collection").order_by("-pk")
    )
    snapshots = list(newest_first[:MAX_LISTED_EXPORTS])
    unfinished = [snapshot.pk for snapshot in snapshots if snapshot.state == Snapshot.State.MAKING]
    jobs = background.newest(EXPORT_TASK, unfinished) if unfinished else {}
    exports = []
    for snapshot in snapshots:
        job = jobs.get(snapshot.pk)
        is_lost = False
        if snapshot.pk in unfinished:
            # If there is no job, a request or a command makes the export itself, and reports nothing before the end.
            is_lost = job.is_over if job else timezone.now() - snapshot.created_at > MAX_DURATION_WITHOUT_JOB
        exports.append(
            ListedExport(
                snapshot=snapshot,
                format=ALL_FORMATS.get(snapshot.format),
                rows_so_far=job.done if job and job.state == job.RUNNING else None,
                is_lost=is_lost,
            )
        )
    return exports


def find_file(snapshot: Snapshot, name: str) -> Path | None:
    """Return the path of a file that the manifest of an export lists, or of the manifest itself.

    Returns None for any other name, for an export that is not ready, for files outside the collection's folder of
    exports, and for a file that is missing.
    """
    names = {entry["name"] for entry in snapshot.manifest.get("files", [])} | {MANIFEST}
    if snapshot.state != Snapshot.State.READY or name not in names or not _is_in_exports_folder(snapshot):
        return None
    folder = Path(snapshot.folder)
    path = folder / name
    # A symbolic link in the folder must not lead out of it.
    if not path.resolve().is_relative_to(folder.resolve()):
        return None
    return path if exists(path) else None
