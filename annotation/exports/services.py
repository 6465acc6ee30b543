"""The action of an export: its row, from which on judgments are locked, and then its files."""

from pathlib import Path

from django.db import transaction

from actions.services import Actor, action
from annotation.exports import listing
from annotation.exports.formats import EVERY
from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, exports_folder, write_snapshot
from annotation.models.snapshots import Snapshot
from corpus.errors import BadInput
from corpus.models import Collection
from jobs import background, workers


def make_files(snapshot: Snapshot) -> None:
    """Write an export, or let a worker do it where it is large. Raises BadInput, and no row stays then."""
    is_listed = exports_folder(snapshot.collection) in Path(snapshot.folder).parents
    # Without a worker nobody would make a large one later, so it is made while the request waits.
    form, collection = EVERY[snapshot.format], snapshot.collection
    if is_listed and listing.is_large(form, collection) and workers.has_workers():
        transaction.on_commit(lambda: background.enqueue(listing.MAKE, snapshot.pk))
        return
    try:
        write_snapshot(snapshot)
    except BadInput:
        snapshot.delete()  # It would seem to be made for ever.
        raise


@action("export.made", key="snapshot", noted=lambda options, _made: {"format": options.format}, after=make_files)
def create_export(
    actor: Actor, collection: Collection, options: ExportOptions, *, folder: Path | None = None
) -> Snapshot:
    """Make an export: a small one at once, a large one by a worker (poll it until it is ready)."""
    return create_snapshot(collection, options, folder, actor.user)
