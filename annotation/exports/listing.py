"""The exports page: snapshots as they are shown, what a new one would hold, and how far one is."""

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
# Rows from which a worker makes the export; smaller ones while the page waits (0.3 s).
LARGE = 50_000
LARGE_SET = 5_000  # The same for training sets, which compare and carry the texts.
SILENT = timedelta(minutes=10)
SHOWN = 50


@dataclass(frozen=True, slots=True)
class ListedExport:
    """A snapshot on the page."""

    snapshot: Snapshot
    form: Format | None
    rows_so_far: int | None  # While it is being made; None before its first rows.
    is_lost: bool  # Nothing was heard of it for a while: no worker took it, or it was interrupted.

    @property
    def is_in_progress(self) -> bool:
        """True if the export is being made, or waits for a worker."""
        return self.snapshot.state == Snapshot.State.MAKING and not self.is_lost

    @property
    def is_ready(self) -> bool:
        """True if the files of the export are complete."""
        return self.snapshot.state == Snapshot.State.READY

    @property
    def splits(self) -> list[tuple[str, dict[str, int]]]:
        """The counts of each split, train, dev, test: the database forgets the order."""
        found: dict[str, dict[str, int]] = self.snapshot.manifest["counts"]["splits"]
        return [(side, found[side]) for side in SPLITS if side in found]

    @property
    def balance_charts(self) -> list[Chart]:
        """The charts of length by score, before and after balancing; none if not balanced."""
        found = self.snapshot.manifest.get("balance")
        return [_cell_chart(self.snapshot.number, when, found) for when in ("before", "after")] if found else []

    @property
    def training_set(self) -> str:
        """The name of its folder, where a training can learn from it; else ""."""
        learnable = self.is_ready and self.snapshot.format == "prism" and self.is_here
        return Path(self.snapshot.folder).name if learnable else ""

    @property
    def is_here(self) -> bool:
        """True if its files lie in the site's folder of exports, which pages offer downloads of."""
        return exports_folder(self.snapshot.collection) in Path(self.snapshot.folder).parents


def _cell_chart(snapshot: int, when: str, found: dict[str, Any]) -> Chart:
    """Draw the counts of the cells, high scores at the top."""
    edges, spread = [0, *found["length_bins"]], found[when]
    columns = [f"{low}-{high - 1}" for low, high in pairwise(edges)] + [f"{edges[-1]} +"]
    counts: list[list[int]] = spread["cells"]
    bins = len(counts)
    rows = {
        _("%(n)s to %(n2)s") % {"n": f"{n / bins:.2f}", "n2": f"{(n + 1) / bins:.2f}"}: counts[n]
        for n in reversed(range(bins))
    }
    after = when == "after"
    filled = sum(n > 0 for row in counts for n in row)
    most, pairs = max(map(max, counts)), sum(map(sum, counts))
    values = {"pairs": f"{pairs:,}", "filled": filled, "bins": bins * len(columns), "most": f"{most:,}"}
    where = _("%(pairs)s training pairs in %(filled)s of %(bins)s cells, at most %(most)s in one") % values
    measures = {"spread": f"{spread['entropy']:.3f}", "spread2": f"{spread['coefficient_of_variation']:.2f}"}
    even = _("entropy %(spread)s, coefficient of variation %(spread2)s") % measures
    return draw_heatmap(
        f"balance-{snapshot}-{when}",
        _("Length by score after balancing") if after else _("Length by score before balancing"),
        rows,
        columns,
        x=_("tokens of the document") if found["length_unit"] == "tokens" else _("words of the document"),
        y=_("target score"),
        high=max(most, 1),
        summary=(
            _("After balancing: %(where)s; normalized %(even)s.")
            if after
            else _("Before balancing: %(where)s; normalized %(even)s.")
        )
        % {"where": where, "even": even},
    )


def list_exports(collection: Collection) -> list[ListedExport]:
    """Return the snapshots as the page shows them, the newest first."""
    rows = Snapshot.objects.filter(collection=collection).select_related("made_by", "collection").order_by("-pk")
    shown = list(rows[:SHOWN])
    jobs = background.newest(MAKE, [one.pk for one in shown if one.state == Snapshot.State.MAKING])
    found = []
    for one in shown:
        job = jobs.get(one.pk)
        # Without a job, a page or a command makes it, of which nothing is heard until the end.
        silent = job.is_over if job else timezone.now() - one.created_at > SILENT
        so_far = job.done if job and job.state == job.RUNNING else None
        is_lost = silent and one.state == Snapshot.State.MAKING
        found.append(ListedExport(one, EVERY.get(one.format), so_far, is_lost))
    return found


def count_origins(collection: Collection) -> list[tuple[str, int]]:
    """Return where the collection's labels come from, and how many."""
    found = Label.objects.filter(pair__collection=collection, aspect=None).values_list("origin")
    return list(found.annotate(n=Count("pk")).order_by("origin"))


def is_large(form: Format, collection: Collection) -> bool:
    """Return whether a worker shall make an export for its size. Counts no further than needed."""
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
    """Return the path of a snapshot's file made from the page; None without such a file."""
    names = {entry["name"] for entry in snapshot.manifest.get("files", [])} | {MANIFEST}
    if snapshot.state != Snapshot.State.READY or name not in names:
        return None
    folder = Path(snapshot.folder)
    path = folder / name
    inside = exports_folder(snapshot.collection) in folder.parents and path.resolve().is_relative_to(folder.resolve())
    return path if inside and exists(path) else None
