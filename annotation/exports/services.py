"""The action that makes an export: its row, which locks the judgments, and then its files.

A worker makes the files of a large export, if a worker runs.
"""

from pathlib import Path

from django.db import transaction

from actions.services import Actor, action
from annotation.exports import listing
from annotation.exports.formats import ALL_FORMATS, Format
from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, exports_folder, write_snapshot
from annotation.models.snapshots import Snapshot
from corpus.errors import BadInput
from corpus.models import Collection, Judgment, Label
from jobs import background, workers
from judges.models import Attempt

# A worker makes exports with more rows. A request makes one of this size in about 0.3 s.
MAX_ROWS_IN_REQUEST = 50_000
MAX_SET_ROWS_IN_REQUEST = 5_000  # Fewer for training sets, because these read, compare and write the texts.


def needs_worker(export_format: Format, collection: Collection) -> bool:
    """Return whether an export may have so many rows that a worker should make it."""
    # Attempts are turns of debates and votes. Those that count are not repeated and have not failed.
    attempts = Attempt.objects.filter(campaign__collection=collection, counts=True)
    votes = attempts.filter(role="vote")
    if export_format.name == "judgments":
        row_sources = [Judgment.objects.filter(pair__collection=collection), votes]
    elif export_format.name == "debates":
        row_sources = [attempts.exclude(role="vote")]
    else:
        # The export of labels, and every training set, have at most one row for each label.
        row_sources = [Label.objects.filter(pair__collection=collection)]
    max_rows = MAX_SET_ROWS_IN_REQUEST if export_format.is_set else MAX_ROWS_IN_REQUEST
    # Rows beyond the limit are not counted, because that would take long. `order_by()` removes the default order, which
    # counting does not need.
    return sum(source.order_by()[: max_rows + 1].count() for source in row_sources) > max_rows


def make_files(snapshot: Snapshot) -> None:
    """Write the files of an export, or have a worker write those of a large one. Raises BadInput, and deletes the row.

    Without a worker a large export is made while the request waits.
    """
    is_listed = exports_folder(snapshot.collection) in Path(snapshot.folder).parents
    export_format, collection = ALL_FORMATS[snapshot.format], snapshot.collection
    if is_listed and needs_worker(export_format, collection) and workers.has_workers():
        transaction.on_commit(lambda: background.enqueue(listing.EXPORT_TASK, snapshot.pk))
        return
    try:
        write_snapshot(snapshot)
    except BadInput:
        snapshot.delete()  # Or it would be shown as in progress for ever.
        raise


@action("export.made", key="snapshot", noted=lambda options, _made: {"format": options.format}, after=make_files)
def create_export(
    actor: Actor, collection: Collection, options: ExportOptions, *, folder: Path | None = None
) -> Snapshot:
    """Make an export: a small one at once, a large one by a worker (poll it until it is ready)."""
    return create_snapshot(collection, options, folder, actor.user)
