"""The action that makes an export: its row, which locks the judgments, and then its files."""

from pathlib import Path

from django.db import transaction

from actions.services import Actor, action
from annotation.exports import listing
from annotation.exports.formats import ALL_FORMATS
from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, exports_folder, write_snapshot
from annotation.models.snapshots import Snapshot
from corpus.errors import BadInput
from corpus.models import Collection
from jobs import background, workers


def make_files(snapshot: Snapshot) -> None:
    """Write the files of an export, or have a worker write those of a large one. Raises BadInput, and deletes the row.

    Without a worker a large export is made while the request waits.
    """
    is_listed = exports_folder(snapshot.collection) in Path(snapshot.folder).parents
    export_format, collection = ALL_FORMATS[snapshot.format], snapshot.collection
    if is_listed and listing.needs_worker(export_format, collection) and workers.has_workers():
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
