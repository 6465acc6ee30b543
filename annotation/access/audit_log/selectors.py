"""Reading the audit log: filters, keyset pages, export. `recording` appends."""

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
CHUNK = 2_000  # Rows that an export holds in memory at a time.
COLUMNS = ("id", "at", "who", "act", "collection", "whom", "details")


@dataclass(frozen=True, slots=True)
class AuditLogFilters:
    """Filters of the page: a kind of acts or one act, who did it, to whom, and days."""

    act: str = ""  # A key of ACTS, or of KINDS.
    actor: str = ""
    person: str = ""
    since: date | None = None
    until: date | None = None

    @classmethod
    def read(cls, given: QueryDict) -> "AuditLogFilters":
        """Read an address's filters; what makes no sense is left out: old links still open."""
        act = given.get("act", "")
        return cls(
            act=act if act in ACTS or act in KINDS else "",
            actor=_parse_name(given.get("actor", "")),
            person=_parse_name(given.get("person", "")),
            since=_parse_day(given.get("since", "")),
            until=_parse_day(given.get("until", "")),
        )

    def query(self) -> str:
        """Return the filters as the query of an address, without the page."""
        return urlencode({name: value for name, value in asdict(self).items() if value})


def load_page(collection: Collection | None, filters: AuditLogFilters, *, before: int | None) -> dict[str, Any]:
    """Load a page of entries older than number `before` (None: the newest); `collection` None: the whole site."""
    found = filter_records(collection, filters)
    # One row more than the page has tells whether there are older ones.
    rows = list((found.filter(pk__lt=before) if before else found)[: PAGE + 1])
    older = rows[PAGE - 1].pk if len(rows) > PAGE else None
    objects = find_objects(rows[:PAGE])
    entries = [(row, *objects[row.pk]) for row in rows[:PAGE]]
    return {"entries": entries, "older": older, "is_newest": before is None}


def filter_records(collection: Collection | None, filters: AuditLogFilters) -> QuerySet[AuditEntry]:
    """Return the entries that pass the filters, newest first, with people."""
    found = AuditEntry.objects.select_related("person", "concerns").order_by("-pk")
    if collection is not None:
        found = found.filter(collection=collection)
    if filters.act:
        found = found.filter(act__in=acts_of_kind(filters.act) if filters.act in KINDS else [filters.act])
    if filters.actor:
        found = found.filter(person__username__iexact=filters.actor)
    if filters.person:
        found = found.filter(concerns__username__iexact=filters.person)
    if filters.since:
        found = found.filter(at__gte=_start_of_day(filters.since))
    if filters.until:
        found = found.filter(at__lt=_start_of_day(filters.until + timedelta(days=1)))
    return found


def csv_lines(found: QuerySet[AuditEntry]) -> Iterator[str]:
    """Yield the lines of a CSV file that a spreadsheet opens without running anything."""
    yield csv_line(COLUMNS)
    for row in found.iterator(CHUNK):
        values = record_of(row) | {"details": json.dumps(row.details, ensure_ascii=False)}
        yield csv_line(["" if values[name] is None else str(values[name]) for name in COLUMNS])


def json_lines(found: QuerySet[AuditEntry]) -> Iterator[str]:
    """Yield the lines of a file of JSON objects, one each."""
    for row in found.iterator(CHUNK):
        yield json.dumps(record_of(row), ensure_ascii=False) + "\n"


def record_of(row: AuditEntry) -> dict[str, Any]:
    """Return an entry with plain values: people and collection by name, None where none."""
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
    # The calendar's first and last year have no day before or after them in other time zones.
    return day if day is not None and date.min.year < day.year < date.max.year else None


def _start_of_day(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, datetime.min.time()))
