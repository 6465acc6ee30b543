"""Data of the exports page: the list of exports with their progress, and the origins of labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from django.db.models import Count
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.exports.files import MANIFEST
from annotation.exports.formats import EVERY, Format
from annotation.exports.query_splits.parts import SPLITS
from annotation.exports.snapshots import exports_folder
from annotation.models.snapshots import Snapshot
from charts import Chart, draw_heatmap
from corpus.models import Collection, Judgment, Label
from jobs import background
from judges.models import Attempt
from store.files import exists

EXPORT_TASK = "annotation.make_snapshot"
MAX_ROWS_INLINE = 50_000  # A worker makes larger exports; one of this size takes about 0.3 s.
MAX_SET_ROWS_INLINE = 5_000  # Fewer for training sets, because they read, compare and write the texts.
MAX_SILENCE = timedelta(minutes=10)  # An export without a job that takes longer is shown as interrupted.
MAX_LISTED_EXPORTS = 50


@dataclass(frozen=True, slots=True)
class ListedExport:
    """An export in the list on the page."""

    snapshot: Snapshot
    format: Format | None  # None if this version of Quorum no longer has the format.
    rows_so_far: int | None  # Rows that a running job has written; None if it has not reported any, or there is no job.
    is_lost: bool  # Whether the export is unfinished and will stay so: its job ended, or it never had one.

    @property
    def is_in_progress(self) -> bool:
        """Whether the export is being made or waits for a worker."""
        return self.snapshot.state == Snapshot.State.MAKING and not self.is_lost

    @property
    def is_ready(self) -> bool:
        """Whether the files of the export are complete."""
        return self.snapshot.state == Snapshot.State.READY

    @property
    def splits(self) -> list[tuple[str, dict[str, int]]]:
        """Counts of each split in the order train, dev, test. Sorted here, since jsonb does not preserve the order."""
        counts: dict[str, dict[str, int]] = self.snapshot.manifest["counts"]["splits"]
        return [(split, counts[split]) for split in SPLITS if split in counts]

    @property
    def balance_charts(self) -> list[Chart]:
        """Charts of length by score, before and after balancing; an empty list if the export is not balanced."""
        balance = self.snapshot.manifest.get("balance")
        if not balance:
            return []
        return [_draw_balance(self.snapshot.number, balance, moment) for moment in ("before", "after")]

    @property
    def training_set(self) -> str:
        """Name of the export's folder if a training job can use it, else an empty string."""
        is_usable = self.is_ready and self.snapshot.format == "prism" and self.is_downloadable
        return Path(self.snapshot.folder).name if is_usable else ""

    @property
    def is_downloadable(self) -> bool:
        """Whether the files are in the collection's folder of exports. Those of the command line may be elsewhere."""
        return exports_folder(self.snapshot.collection) in Path(self.snapshot.folder).parents


def list_exports(collection: Collection) -> list[ListedExport]:
    """Return the collection's newest exports, newest first, at most MAX_LISTED_EXPORTS."""
    rows = Snapshot.objects.filter(collection=collection).select_related("made_by", "collection").order_by("-pk")
    snapshots = list(rows[:MAX_LISTED_EXPORTS])
    unfinished_keys = [snapshot.pk for snapshot in snapshots if snapshot.state == Snapshot.State.MAKING]
    jobs = background.newest(EXPORT_TASK, unfinished_keys) if unfinished_keys else {}
    exports = []
    for snapshot in snapshots:
        job = jobs.get(snapshot.pk)
        # Without a job, a request or a command makes the export itself, and reports nothing until the end.
        is_abandoned = job.is_over if job else timezone.now() - snapshot.created_at > MAX_SILENCE
        exports.append(
            ListedExport(
                snapshot=snapshot,
                format=EVERY.get(snapshot.format),
                rows_so_far=job.done if job and job.state == job.RUNNING else None,
                is_lost=is_abandoned and snapshot.state == Snapshot.State.MAKING,
            )
        )
    return exports


def count_origins(collection: Collection) -> list[tuple[str, int]]:
    """Return the origins of the collection's labels of pairs, in order, with the number of labels of each."""
    origins = Label.objects.filter(pair__collection=collection, aspect=None).values_list("origin")
    return list(origins.annotate(label_count=Count("pk")).order_by("origin"))


def is_large(export_format: Format, collection: Collection) -> bool:
    """Return whether an export may have so many rows that a worker should make it. Counts no further than needed."""
    attempts = Attempt.objects.filter(campaign__collection=collection, counts=True)
    votes = attempts.filter(role="vote")
    if export_format.name == "judgments":
        judgments = Judgment.objects.filter(pair__collection=collection)
        sources = [judgments.order_by(), votes.order_by()]
    elif export_format.name == "debates":
        sources = [attempts.exclude(role="vote").order_by()]
    else:
        sources = [Label.objects.filter(pair__collection=collection).order_by()]
    max_rows = MAX_SET_ROWS_INLINE if export_format.is_set else MAX_ROWS_INLINE
    return sum(source[: max_rows + 1].count() for source in sources) > max_rows


def find_file(snapshot: Snapshot, name: str) -> Path | None:
    """Return the path of a file that the snapshot's manifest names, or of the manifest itself.

    Returns None for any other name, for a snapshot that is not ready, for files outside the collection's
    folder of exports, and for a file that is missing.
    """
    names = {entry["name"] for entry in snapshot.manifest.get("files", [])} | {MANIFEST}
    if snapshot.state != Snapshot.State.READY or name not in names:
        return None
    folder = Path(snapshot.folder)
    if exports_folder(snapshot.collection) not in folder.parents:
        return None
    path = folder / name
    # A symbolic link in the folder must not lead out of it.
    if not path.resolve().is_relative_to(folder.resolve()):
        return None
    return path if exists(path) else None


def _draw_balance(export_number: int, balance: Mapping[str, Any], moment: str) -> Chart:
    """Draw the training pairs by length and target score, with high scores at the top.

    `balance` is the manifest's entry on balancing (length_balance.balancing.balance_pairs); `moment` is its
    key "before" or "after".
    """
    spread = balance[moment]  # As measure_spread returns it.
    counts: list[list[int]] = spread["cells"]  # Training pairs by score, lowest first, and by length, shortest first.
    length_edges = [0, *balance["length_bins"]]
    columns = [f"{low}-{high - 1}" for low, high in pairwise(length_edges)] + [f"{length_edges[-1]} +"]
    rows = {
        _("%(low)s to %(high)s")
        % {"low": f"{row / len(counts):.2f}", "high": f"{(row + 1) / len(counts):.2f}"}: counts[row]
        for row in reversed(range(len(counts)))
    }
    cells = list(chain.from_iterable(counts))
    distribution = _("%(pairs)s training pairs in %(filled)s of %(bins)s cells, at most %(most)s in one") % {
        "pairs": f"{sum(cells):,}",
        "filled": sum(count > 0 for count in cells),
        "bins": len(cells),
        "most": f"{max(cells):,}",
    }
    evenness = _("entropy %(entropy)s, coefficient of variation %(variation)s") % {
        "entropy": f"{spread['entropy']:.3f}",
        "variation": f"{spread['coefficient_of_variation']:.2f}",
    }
    if moment == "after":
        title = _("Length by score after balancing")
        summary = _("After balancing: %(distribution)s; normalized %(evenness)s.")
    else:
        title = _("Length by score before balancing")
        summary = _("Before balancing: %(distribution)s; normalized %(evenness)s.")
    return draw_heatmap(
        f"balance-{export_number}-{moment}",
        title,
        rows,
        columns,
        x=_("tokens of the document") if balance["length_unit"] == "tokens" else _("words of the document"),
        y=_("target score"),
        high=max(*cells, 1),
        summary=summary % {"distribution": distribution, "evenness": evenness},
    )
