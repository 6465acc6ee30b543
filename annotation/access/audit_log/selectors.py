"""Reading the audit log: filters, pages and export."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date

from annotation.access.audit_log.objects import find_objects
from annotation.access.audit_log.recording import ACTS, KINDS, acts_of_kind
from annotation.models import AuditEntry
from charts.cells import csv_line
from corpus.models import Collection

PAGE = 50
CHUNK = 2_000  # An export reads so many rows at a time.
COLUMNS = ("id", "at", "who", "act", "collection", "whom", "details")


@dataclass(frozen=True, slots=True)
class AuditLogFilters:
    """Filters of the audit log: an action or a kind of actions, who did it, whom it affected, and days."""

    act: str = ""  # A key of ACTS, or of KINDS.
    actor: str = ""
    person: str = ""
    since: date | None = None
    until: date | None = None

    @classmethod
    def read(cls, parameters: QueryDict) -> "AuditLogFilters":
        """Read the filters of an address, without invalid ones, so that old links still open."""
        act = parameters.get("act", "")
        return cls(
            act=act if act in ACTS or act in KINDS else "",
            actor=_parse_name(parameters.get("actor", "")),
            person=_parse_name(parameters.get("person", "")),
            since=_parse_day(parameters.get("since", "")),
            until=_parse_day(parameters.get("until", "")),
        )

    def query(self) -> str:
        """Return the filters as a query string, without the page."""
        return urlencode({name: value for name, value in asdict(self).items() if value})


def load_page(collection: Collection | None, filters: AuditLogFilters, *, before: int | None) -> dict[str, Any]:
    """Return a page of entries with ids below `before` (None: the newest), of a collection or the whole site."""
    matching = filter_records(collection, filters)
    # One more than a page, which tells whether there are older ones.
    rows = list((matching.filter(pk__lt=before) if before else matching)[: PAGE + 1])
    older = rows[PAGE - 1].pk if len(rows) > PAGE else None
    objects = find_objects(rows[:PAGE])
    entries = [(row, *objects[row.pk]) for row in rows[:PAGE]]
    return {"entries": entries, "older": older, "is_newest": before is None}


def filter_records(collection: Collection | None, filters: AuditLogFilters) -> QuerySet[AuditEntry]:
    """Return the entries that match the filters, newest first, with their people."""
    entries = AuditEntry.objects.select_related("person", "concerns").order_by("-pk")
    if collection is not None:
        entries = entries.filter(collection=collection)
    if filters.act:
        entries = entries.filter(act__in=acts_of_kind(filters.act) if filters.act in KINDS else [filters.act])
    if filters.actor:
        entries = entries.filter(person__username__iexact=filters.actor)
    if filters.person:
        entries = entries.filter(concerns__username__iexact=filters.person)
    if filters.since:
        entries = entries.filter(at__gte=_start_of_day(filters.since))
    if filters.until:
        entries = entries.filter(at__lt=_start_of_day(filters.until + timedelta(days=1)))
    return entries


def csv_lines(entries: QuerySet[AuditEntry]) -> Iterator[str]:
    """Yield the lines of a CSV file without cells that a spreadsheet would run as formulas."""
    yield csv_line(COLUMNS)
    for row in entries.iterator(CHUNK):
        values = record_of(row) | {"details": json.dumps(row.details, ensure_ascii=False)}
        yield csv_line(["" if values[name] is None else str(values[name]) for name in COLUMNS])


def json_lines(entries: QuerySet[AuditEntry]) -> Iterator[str]:
    """Yield the lines of a JSON Lines file."""
    for row in entries.iterator(CHUNK):
        yield json.dumps(record_of(row), ensure_ascii=False) + "\n"


def record_of(row: AuditEntry) -> dict[str, Any]:
    """Return an entry with plain values; people and collection by name, or None."""
    return {
        "id": row.pk,
        "at": row.at.isoformat(),
        "who": row.person.username if row.person else None,
        "act": row.act,
        "collection": row.collection_name or None,
        "whom": row.concerns.username if row.concerns else None,
        "details": row.details,
    }


def _parse_name(text: str) -> str:
    return text.replace("\0", "").strip()[:150]


def _parse_day(text: str) -> date | None:
    try:
        day = parse_date(text)
    except ValueError:
        return None
    # In another time zone a day of the first or last year may be outside the calendar.
    return day if day is not None and date.min.year < day.year < date.max.year else None


def _start_of_day(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, datetime.min.time()))
