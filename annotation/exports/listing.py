"""Data of the exports page: the list of exports with their progress, and the origins of labels."""

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
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

MAKE = "annotation.make_snapshot"
LARGE = 50_000  # Number of rows from which a worker makes the export; smaller ones take about 0.3 s.
LARGE_SET = 5_000  # The same of training sets, which compare and contain texts.
SILENT = timedelta(minutes=10)
SHOWN = 50


@dataclass(frozen=True, slots=True)
class ListedExport:
    """A snapshot on the page."""

    snapshot: Snapshot
    form: Format | None
    rows_so_far: int | None  # Number of rows of an export in progress; None before the first.
    is_lost: bool  # Whether no worker took it for a while, or it was interrupted.

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
        """Counts of train, dev and test, in this order, which JSON in the database does not keep."""
        counts: dict[str, dict[str, int]] = self.snapshot.manifest["counts"]["splits"]
        return [(side, counts[side]) for side in SPLITS if side in counts]

    @property
    def balance_charts(self) -> list[Chart]:
        """Charts of length by score, before and after balancing; none if the set is not balanced."""
        balance = self.snapshot.manifest.get("balance")
        return [_cell_chart(self.snapshot.number, when, balance) for when in ("before", "after")] if balance else []

    @property
    def training_set(self) -> str:
        """Name of its folder if a training job can use it, else empty."""
        is_usable = self.is_ready and self.snapshot.format == "prism" and self.is_here
        return Path(self.snapshot.folder).name if is_usable else ""

    @property
    def is_here(self) -> bool:
        """Whether its files are in the site's folder of exports, of which pages offer downloads."""
        return exports_folder(self.snapshot.collection) in Path(self.snapshot.folder).parents


def _cell_chart(snapshot: int, when: str, balance: dict[str, Any]) -> Chart:
    """Draw the counts of the cells, with high scores at the top."""
    edges, spread = [0, *balance["length_bins"]], balance[when]
    columns = [f"{low}-{high - 1}" for low, high in pairwise(edges)] + [f"{edges[-1]} +"]
    counts: list[list[int]] = spread["cells"]
    bins = len(counts)
    rows = {
        _("%(n)s to %(n2)s") % {"n": f"{n / bins:.2f}", "n2": f"{(n + 1) / bins:.2f}"}: counts[n]
        for n in reversed(range(bins))
    }
    is_after = when == "after"
    filled = sum(n > 0 for row in counts for n in row)
    largest, pairs = max(map(max, counts)), sum(map(sum, counts))
    values = {"pairs": f"{pairs:,}", "filled": filled, "bins": bins * len(columns), "most": f"{largest:,}"}
    distribution = _("%(pairs)s training pairs in %(filled)s of %(bins)s cells, at most %(most)s in one") % values
    measures = {"spread": f"{spread['entropy']:.3f}", "spread2": f"{spread['coefficient_of_variation']:.2f}"}
    evenness = _("entropy %(spread)s, coefficient of variation %(spread2)s") % measures
    return draw_heatmap(
        f"balance-{snapshot}-{when}",
        _("Length by score after balancing") if is_after else _("Length by score before balancing"),
        rows,
        columns,
        x=_("tokens of the document") if balance["length_unit"] == "tokens" else _("words of the document"),
        y=_("target score"),
        high=max(largest, 1),
        summary=(
            _("After balancing: %(where)s; normalized %(even)s.")
            if is_after
            else _("Before balancing: %(where)s; normalized %(even)s.")
        )
        % {"where": distribution, "even": evenness},
    )


def list_exports(collection: Collection) -> list[ListedExport]:
    """Return the newest exports of a collection, the newest first."""
    rows = Snapshot.objects.filter(collection=collection).select_related("made_by", "collection").order_by("-pk")
    snapshots = list(rows[:SHOWN])
    in_progress = [snapshot.pk for snapshot in snapshots if snapshot.state == Snapshot.State.MAKING]
    jobs = background.newest(MAKE, in_progress) if in_progress else {}
    exports = []
    for snapshot in snapshots:
        job = jobs.get(snapshot.pk)
        # Without a job, a page or a command makes the export and reports nothing until the end.
        is_silent = job.is_over if job else timezone.now() - snapshot.created_at > SILENT
        rows_so_far = job.done if job and job.state == job.RUNNING else None
        is_lost = is_silent and snapshot.state == Snapshot.State.MAKING
        exports.append(ListedExport(snapshot, EVERY.get(snapshot.format), rows_so_far, is_lost))
    return exports


def count_origins(collection: Collection) -> list[tuple[str, int]]:
    """Return the origins of the collection's labels, with the number of labels of each."""
    origins = Label.objects.filter(pair__collection=collection, aspect=None).values_list("origin")
    return list(origins.annotate(n=Count("pk")).order_by("origin"))


def is_large(form: Format, collection: Collection) -> bool:
    """Return whether an export is so large that a worker should make it. Counts no further than needed."""
    attempts = Attempt.objects.filter(campaign__collection=collection, counts=True)
    labels = Label.objects.filter(pair__collection=collection)
    judgments = Judgment.objects.filter(pair__collection=collection)
    sources = {
        "judgments": (judgments, attempts.filter(role="vote")),
        "debates": (attempts.exclude(role="vote"),),
    }.get(form.name, (labels,))
    most = LARGE_SET if form.is_set else LARGE
    return sum(source.order_by()[: most + 1].count() for source in sources) > most


def file_of(snapshot: Snapshot, name: str) -> Path | None:
    """Return the path of a file of a snapshot that was made from the page; None without such a file."""
    names = {entry["name"] for entry in snapshot.manifest.get("files", [])} | {MANIFEST}
    if snapshot.state != Snapshot.State.READY or name not in names:
        return None
    folder = Path(snapshot.folder)
    path = folder / name
    is_inside = exports_folder(snapshot.collection) in folder.parents
    is_inside = is_inside and path.resolve().is_relative_to(folder.resolve())
    return path if is_inside and exists(path) else None
