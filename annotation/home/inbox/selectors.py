"""The inbox of a collection as one of its admins sees it: what needs a decision, and what has ended."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from annotation.exports.listing import EXPORT_TASK
from annotation.home.inbox.attention import AttentionItem, list_attention, read_open_work
from annotation.models import User
from annotation.quality.label_quality.statistics import is_outdated, read_stored_statistics
from corpus.models import Collection
from store.sql import fetch_rows, read_sql

KEPT = timedelta(days=14)  # What ended earlier is no news.
MOST_ENDED = 20
BACKUP_TASK = "config.tasks.back_up"
LIST_ENDED = read_sql(__file__, "list_ended")
# By kind and whether it failed.
SENTENCES = {
    ("import", False): _("Import %(number)s is finished."),
    ("import", True): _("Import %(number)s failed."),
    ("export", False): _("Export %(number)s is ready."),
    ("export", True): _("Export %(number)s failed."),
    ("training", False): _("Training job %(number)s is finished."),
    ("training", True): _("Training job %(number)s failed."),
    ("report", False): _("Report %(number)s is ready."),
    ("report", True): _("Report %(number)s failed."),
    ("push-dataset", False): _("Export %(number)s was pushed to the hub."),
    ("push-dataset", True): _("The push of export %(number)s to the hub failed."),
    ("push-model", False): _("Model %(number)s was pushed to the hub."),
    ("push-model", True): _("The push of model %(number)s to the hub failed."),
    ("backup", True): _("The backup failed."),
    ("comparing", False): _("Comparisons by judges %(number)s are finished."),
    ("comparing", True): _("Comparisons by judges %(number)s failed."),
    ("gate", True): _("Gate %(number)s failed."),
    ("campaign", False): _("Campaign %(number)s is finished."),
}
PAGES = {
    "import": "file_import",
    "training": "training_job",
    "report": "report",
    "gate": "gate",
    "comparing": "comparison_judging",
    "push-dataset": "push_export",
    "push-model": "push_model",
}


@dataclass(frozen=True, slots=True)
class EndedWork:
    """Long work that ended. `address`: the page with its result, or with why it failed."""

    kind: str
    number: int
    failed: bool
    at: datetime
    address: str

    @property
    def sentence(self) -> str:
        return str(SENTENCES[self.kind, self.failed]) % {"number": self.number}

    @property
    def identity(self) -> str:
        """Return a text that no other end has."""
        return f"{self.kind} {self.number} {self.at.isoformat()}"


@dataclass(frozen=True, slots=True)
class Inbox:
    """What an admin is told about a collection at a moment."""

    items: list[AttentionItem]
    ended: list[EndedWork]  # Since the reader last dismissed such news; the newest first.
    is_open: bool  # Something is running that may change it.
    needs_statistics: bool
    at: datetime

    @property
    def count(self) -> int:
        return len(self.items) + len(self.ended)

    @property
    def signature(self) -> str:
        """Return a text that changes with what is listed."""
        rows = [(item.identity, item.count, item.words) for item in self.items]
        text = repr((rows, [ended.identity for ended in self.ended]))
        return sha256(text.encode()).hexdigest()[:12]


def read_inbox(collection: Collection, user: User, *, judges: bool, adjudicates: bool) -> Inbox:
    """Read the inbox from counters, small indexes and stored statistics. `judges`, `adjudicates`: as list_attention."""
    at = timezone.now()
    open_work = read_open_work(collection, polls=True)
    statistics = read_stored_statistics(collection)
    return Inbox(
        items=list_attention(collection, open_work, statistics, judges=judges, adjudicates=adjudicates),
        ended=list_ended(collection, user, at),
        is_open=open_work.is_open,
        needs_statistics=is_outdated(collection, statistics),
        at=at,
    )


def list_ended(collection: Collection, user: User, at: datetime) -> list[EndedWork]:
    """List what ended in the last days before `at` and after the person's last dismissal, the newest first."""
    rows = fetch_rows(
        LIST_ENDED,
        collection=collection.pk,
        reader=user.pk,
        after=at - KEPT,
        most=MOST_ENDED,
        export_task=EXPORT_TASK,
        backup_task=BACKUP_TASK,
    )
    return [
        EndedWork(kind, number, failed, ended_at, _address_of(collection, kind=kind, number=number))
        for kind, number, failed, ended_at in rows
    ]


def _address_of(collection: Collection, *, kind: str, number: int) -> str:
    if kind in PAGES:
        return reverse(PAGES[kind], args=[collection.name, number])
    if kind == "backup":
        return reverse("backups")
    if kind == "export":
        return reverse("exports", args=[collection.name]) + "#snapshots"
    return reverse("campaigns", args=[collection.name])
