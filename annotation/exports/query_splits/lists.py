"""Queries whose split is fixed: lists that a collection keeps, and queries that carry the name of their split.

A kept list is held out: its queries enter neither train nor dev of any set, unless `--split train=NAME` says so.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import SomeScope, record
from annotation.models.snapshots import QuerySplit
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.models import Collection, Query
from store.sql import fetch_rows

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", re.ASCII)
SHOWN = 20  # Names or ids in a message.
MOST = 200  # Names that are offered.
CARRIED = """
    SELECT DISTINCT metadata ->> 'split' AS name FROM corpus_query
    WHERE collection_id = %(collection)s AND is_current AND jsonb_typeof(metadata -> 'split') = 'string'
      AND metadata ->> 'split' <> '' ORDER BY 1 LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class NamedQueries:
    """The queries of a collection that a name stands for."""

    name: str
    collection: str
    ids: frozenset[str]
    is_list: bool  # Kept by the collection; else the queries carry the name in their metadata, as `split`.

    def described(self) -> dict[str, Any]:
        """Return what the manifest says of them: equal queries have one sha256, in any order."""
        text = "".join(f"{one}\n" for one in sorted(self.ids))
        return {
            "name": self.name,
            "collection": self.collection,
            "from": "list" if self.is_list else "queries",
            "queries": len(self.ids),
            "sha256": sha256(text.encode()).hexdigest(),
        }


def list_splits(collection: Collection) -> list[QuerySplit]:
    """Return the kept lists, by name."""
    return list(QuerySplit.objects.filter(collection=collection).order_by("name"))


def carried_names(collection: Collection) -> list[str]:
    """Return the names that queries carry as their split."""
    return [name for (name,) in fetch_rows(CARRIED, collection=collection.pk, most=MOST)]


def find_queries(collection: Collection, name: str) -> NamedQueries | None:
    """Return a name's queries, those of a kept list first; None where there are none."""
    # What an admin kept here goes before what imported files say.
    kept = QuerySplit.objects.filter(collection=collection, name=name).first()
    if kept is not None:
        return NamedQueries(name, collection.name, frozenset(kept.query_ids), is_list=True)
    carried = Query.objects.filter(collection=collection, is_current=True, metadata__split=name)
    ids = frozenset(carried.values_list("external_id", flat=True))
    return NamedQueries(name, collection.name, ids, is_list=False) if ids else None


def list_names(collection: Collection) -> list[str]:
    """Return every name that a split can be given."""
    kept = QuerySplit.objects.filter(collection=collection).order_by("name").values_list("name", flat=True)
    return sorted({*kept[:MOST], *carried_names(collection)})[:MOST]


def keep_split(
    by: SomeScope | None, collection: Collection, name: str, query_ids: Iterable[str], *, made_by: str
) -> QuerySplit:
    """Keep a list of queries under a name, in place of the one that had it.

    Raises BadInput, and changes nothing, for a name that is none, no id, and ids of no query.
    """
    if not NAME.fullmatch(name):
        raise BadInput(_("%(name)s is no name of a list; use at most 40 letters, digits, - and _") % {"name": name})
    # ADR 0016: ids of files and not rows, so that a query whose text is updated stays on its list.
    wanted = sorted({one for text in query_ids if (one := text.strip())})
    if not wanted:
        raise BadInput(_("The list has no query id; give one id per line"))
    known = set(
        Query.objects.filter(collection=collection, is_current=True, external_id__in=wanted).values_list(
            "external_id", flat=True
        )
    )
    if unknown := [one for one in wanted if one not in known]:
        raise BadInput(
            _("%(n)s of %(of)s ids are no queries of %(collection)s: %(first)s")
            % {"n": len(unknown), "of": len(wanted), "collection": collection.name, "first": _join(unknown)}
        )
    with transaction.atomic():
        kept, _made = QuerySplit.objects.update_or_create(
            collection=collection, name=name, defaults={"query_ids": wanted, "made_by": made_by}
        )
        record(by, "export.split-kept", collection, split=name, queries=len(wanted))
    return kept


def delete_split(by: SomeScope | None, collection: Collection, name: str) -> None:
    """Delete a kept list: training sets may hold its queries from now on. Raises BadInput where there is none."""
    with transaction.atomic():
        gone, _rows = QuerySplit.objects.filter(collection=collection, name=name).delete()
        if not gone:
            known = _join([one.name for one in list_splits(collection)]) or _("none yet")
            raise BadInput(
                _("%(collection)s keeps no list named %(name)s; there are: %(known)s")
                % {"collection": collection.name, "name": name, "known": known}
            )
        record(by, "export.split-deleted", collection, split=name)


def read_ids(source: FileSource) -> list[str]:
    """Return a file's query ids, one a line. BadInput names the line of what is no id."""
    return [source.identifier(number, line.strip(), "query id") for number, line in source.texts()]


def _join(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (" …" if len(names) > SHOWN else "")
