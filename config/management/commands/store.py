"""`store status|publish|clean`: the files that several machines share (docs/operators.md)."""

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
COPIES = ("exports", "models")  # Never changed, so a copy can be fetched again at any time.
OF_COLLECTIONS = ("exports", "models", "jobs", "uploads")  # Folders of VAR with a folder for each collection.


class Command(QuorumCommand):
    """Look at the store, fill it from this machine, or make room on this machine."""

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
        """Return what the store holds, and how much of it is on this machine."""
        rows = StoredFile.objects.select_related("content")
        size = rows.aggregate(sum=Sum("content__size"))["sum"] or 0
        here = sum((settings.VAR / name).is_file() for name in rows.values_list("name", flat=True).iterator())
        self.say(f"{settings.STORE}: {rows.count():,} files, {size / 1e6:,.1f} MB; {here:,} of them on this machine")
        return {"files": rows.count(), "bytes": size, "here": here}

    def publish(self) -> dict[str, Any]:
        """Publish files of VAR with names unknown to the store, and contents that it has lost."""
        count, gone = 0, len(refill_contents())
        for kind in KINDS:
            for folder in sorted((settings.VAR / kind).glob("*/*" if kind == "jobs" else "*")):
                count += publish(folder, leave_out=("job.json",) if kind == "jobs" else (), only_new=True)
        self.say(f"published {count:,} files" + (f"; {gone:,} are lost: restore a backup" if gone else ""))
        return {"published": count, "lost": gone}

    def clean(self) -> dict[str, Any]:
        """Remove copies that can be fetched again, and what is left of deleted collections."""
        freed = sum(remove_local_copies(settings.VAR / kind) for kind in COPIES)
        gone = set(AuditEntry.objects.filter(act="collection.deleted").values_list("collection_name", flat=True))
        # A collection of the same name may have been made since; its files are not leftovers.
        gone -= set(Collection.objects.values_list("name", flat=True))
        for folder in (settings.VAR / kind / name for kind in OF_COLLECTIONS for name in gone):
            freed += sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            shutil.rmtree(folder, ignore_errors=True)
        self.say(f"freed {freed / 1e6:,.1f} MB")
        return {"freed": freed}
