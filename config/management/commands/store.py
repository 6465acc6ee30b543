"""`store status|publish|clean`: manage the files that several machines share (docs/operators.md)."""

import shutil
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.db.models import Sum

from annotation.models import AuditEntry
from corpus.commands import QuorumCommand
from corpus.errors import BadInput
from corpus.models import Collection
from store.files import open_store, publish, refill_contents, remove_local_copies
from store.models import StoredFile
from store.nodes import node_id

KINDS = ("exports", "models", "jobs", "backups")
COPIES = ("exports", "models")  # Their files never change, so a copy can be fetched again at any time.
OF_COLLECTIONS = ("exports", "models", "jobs", "uploads")  # Folders in VAR with a subfolder for each collection.


class Command(QuorumCommand):
    """The command that shows the store, fills it from this machine, or frees space on this machine."""

    help = "Show the store of files that machines share, publish what only this machine has, or remove local copies."

    def arguments(self, parser: CommandParser) -> None:
        acts = ["status", "publish", "clean"]
        parser.add_argument("act", choices=acts, help="publish: what is in VAR already; clean: local copies in VAR")

    def run(self, **options: Any) -> object:
        if not settings.STORE:
            raise BadInput("QUORUM_STORE is not set, so the files of this instance lie in VAR alone")
        open_store().check()
        act: Any = {"status": self.show, "publish": self.publish, "clean": self.clean}[options["act"]]
        return {"store": settings.STORE, "node": node_id(), **act()}

    def show(self) -> dict[str, Any]:
        """Return the number and size of the stored files, and how many of them are on this machine."""
        rows = StoredFile.objects.select_related("content")
        size = rows.aggregate(sum=Sum("content__size"))["sum"] or 0
        local_count = sum((settings.VAR / name).is_file() for name in rows.values_list("name", flat=True).iterator())
        self.say(
            f"{settings.STORE}: {rows.count():,} files, {size / 1e6:,.1f} MB; {local_count:,} of them on this machine"
        )
        return {"files": rows.count(), "bytes": size, "here": local_count}

    def publish(self) -> dict[str, Any]:
        """Publish the files of VAR that are new to the store, and contents that it has lost."""
        count, lost_count = 0, len(refill_contents())
        for kind in KINDS:
            for folder in sorted((settings.VAR / kind).glob("*/*" if kind == "jobs" else "*")):
                count += publish(folder, leave_out=("job.json",) if kind == "jobs" else (), only_new=True)
        self.say(f"published {count:,} files" + (f"; {lost_count:,} are lost: restore a backup" if lost_count else ""))
        return {"published": count, "lost": lost_count}

    def clean(self) -> dict[str, Any]:
        """Remove copies that can be fetched again, and leftovers of deleted collections."""
        freed = sum(remove_local_copies(settings.VAR / kind) for kind in COPIES)
        deleted_names = set(
            AuditEntry.objects.filter(act="collection.deleted").values_list("collection_name", flat=True)
        )
        # A new collection may have the name of a deleted one; its files are not leftovers.
        deleted_names -= set(Collection.objects.values_list("name", flat=True))
        for folder in (settings.VAR / kind / name for kind in OF_COLLECTIONS for name in deleted_names):
            freed += sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            shutil.rmtree(folder, ignore_errors=True)
        self.say(f"freed {freed / 1e6:,.1f} MB")
        return {"freed": freed}
