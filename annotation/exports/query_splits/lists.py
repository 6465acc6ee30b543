"""Queries with a fixed split: held-out lists of a collection, and queries whose metadata names their split.

Queries of a held-out list enter neither train nor dev of any set, unless the option `split` assigns the list to it.
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
SHOWN = 20  # Most names or ids in a message.
MOST = 200  # Most names that are offered.
LIST_METADATA_NAMES = """
    SELECT DISTINCT metadata ->> 'split' AS name FROM corpus_query
    WHERE collection_id = %(collection)s AND is_current AND jsonb_typeof(metadata -> 'split') = 'string'
      AND metadata ->> 'split' <> '' ORDER BY 1 LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class NamedQueries:
    """The queries of a collection under the name of a split."""

    name: str
    collection: str
    ids: frozenset[str]
    is_list: bool  # A list of the collection; else the name is the `split` of the queries' metadata.

    def described(self) -> dict[str, Any]:
        """Return the description for the manifest. The sha256 does not depend on the order of the queries."""
        text = "".join(f"{query_id}\n" for query_id in sorted(self.ids))
        return {
            "name": self.name,
            "collection": self.collection,
            "from": "list" if self.is_list else "queries",
            "queries": len(self.ids),
            "sha256": sha256(text.encode()).hexdigest(),
        }


def list_splits(collection: Collection) -> list[QuerySplit]:
    """Return the held-out lists, by name."""
    return list(QuerySplit.objects.filter(collection=collection).order_by("name"))


def carried_names(collection: Collection) -> list[str]:
    """Return the names of splits in the metadata of queries."""
    return [name for (name,) in fetch_rows(LIST_METADATA_NAMES, collection=collection.pk, most=MOST)]


def find_queries(collection: Collection, name: str) -> NamedQueries | None:
    """Return the queries of a split, or None. A held-out list takes precedence over metadata of imported files."""
    split = QuerySplit.objects.filter(collection=collection, name=name).first()
    if split is not None:
        return NamedQueries(name, collection.name, frozenset(split.query_ids), is_list=True)
    queries = Query.objects.filter(collection=collection, is_current=True, metadata__split=name)
    ids = frozenset(queries.values_list("external_id", flat=True))
    return NamedQueries(name, collection.name, ids, is_list=False) if ids else None


def list_names(collection: Collection) -> list[str]:
    """Return all names of splits."""
    names = QuerySplit.objects.filter(collection=collection).order_by("name").values_list("name", flat=True)
    return sorted({*names[:MOST], *carried_names(collection)})[:MOST]


def keep_split(
    by: SomeScope | None, collection: Collection, name: str, query_ids: Iterable[str], *, made_by: str
) -> QuerySplit:
    """Store a held-out list of queries, in place of the list of the same name.

    Raises BadInput, and changes nothing, for an invalid name, without ids, and for ids of no query.
    """
    if not NAME.fullmatch(name):
        raise BadInput(_("%(name)s is not a valid list name; use at most 40 letters, digits, - and _") % {"name": name})
    # ADR 0016: external ids and not keys of rows, so that a query whose text is updated remains on its list.
    ids = sorted({query_id for text in query_ids if (query_id := text.strip())})
    if not ids:
        raise BadInput(_("The list has no query id; give one id per line"))
    existing_ids = set(
        Query.objects.filter(collection=collection, is_current=True, external_id__in=ids).values_list(
            "external_id", flat=True
        )
    )
    if unknown := [query_id for query_id in ids if query_id not in existing_ids]:
        raise BadInput(
            _("%(n)s of %(of)s ids are not queries of %(collection)s: %(first)s")
            % {"n": len(unknown), "of": len(ids), "collection": collection.name, "first": _join(unknown)}
        )
    with transaction.atomic():
        split, _made = QuerySplit.objects.update_or_create(
            collection=collection, name=name, defaults={"query_ids": ids, "made_by": made_by}
        )
        record(by, "export.split-kept", collection, split=name, queries=len(ids))
    return split


def delete_split(by: SomeScope | None, collection: Collection, name: str) -> None:
    """Delete a held-out list: training sets may contain its queries from now on. Raises BadInput without the list."""
    with transaction.atomic():
        deleted, _rows = QuerySplit.objects.filter(collection=collection, name=name).delete()
        if not deleted:
            names = _join([split.name for split in list_splits(collection)]) or _("none yet")
            raise BadInput(
                _("%(collection)s keeps no list named %(name)s; there are: %(known)s")
                % {"collection": collection.name, "name": name, "known": names}
            )
        record(by, "export.split-deleted", collection, split=name)


def read_ids(source: FileSource) -> list[str]:
    """Return the query ids of a file, one per line. Raises BadInput with the line of an invalid id."""
    return [source.identifier(number, line.strip(), "query id") for number, line in source.texts()]


def _join(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (" …" if len(names) > SHOWN else "")
