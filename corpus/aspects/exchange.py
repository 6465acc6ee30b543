"""`aspects NAME import|export F`: a round trip of queries' sets and documents."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from corpus.aspects.entries import AspectSnapshot, Entries
from corpus.aspects.files import AspectRow, aspect_line, by_query, parse_aspects, refuse_bad_lines
from corpus.aspects.revising import Act, AspectChange, RevisionDecision, lock_aspects
from corpus.collections.audit_log import record_act
from corpus.formats.files import FileSource
from corpus.models import Assessor, Collection, Document, Query
from store.sql import read_sql

IMPORTER = "aspects"  # The assessor under whose name imported sets stand.


@transaction.atomic
def import_aspects(collection: Collection, path: Path) -> dict[str, Any]:
    """Import a file of aspects: each of its queries gets the file's set. Any bad line refuses the whole file.

    A document that the file does not name is under the aspect no longer; a discarded one that it
    does not name stays discarded. What was before stands in the history and can be brought back by
    undo. Return what was done, as the command prints it with --json.
    """
    source = FileSource(path)
    rows, bad = parse_aspects(source)
    queries = _primary_keys(Query, collection, {row.query for row in rows})
    documents = _primary_keys(Document, collection, {one for row in rows for one in row.documents})
    # All mistakes at once, unknown ids among them, before any query is changed.
    bad += [(row.line, f'no query has the id "{row.query}"') for row in rows if row.query not in queries]
    named = [(row.line, name) for row in rows for name in row.documents]
    bad += [(line, f'no document has the id "{name}"') for line, name in named if name not in documents]
    refuse_bad_lines(source, bad)
    author, _ = Assessor.objects.get_or_create(collection=collection, kind=Assessor.Kind.HUMAN_IMPORT, name=IMPORTER)
    grouped = by_query(rows)
    changed = sum(
        _import_query(Query.objects.get(pk=queries[name]), author, found, documents) for name, found in grouped.items()
    )
    record_act(None, "aspects.imported", collection, queries=len(grouped), aspects=len(rows), changed=changed)
    return {
        "collection": collection.name,
        "queries": len(grouped),
        "aspects": len(rows),
        "documents": sum(len(row.documents) for row in rows),
        "changed": changed,
    }


def _primary_keys(model: type[Query] | type[Document], collection: Collection, names: set[str]) -> dict[str, int]:
    """Return external id to primary key, of those names that the collection has."""
    found = model._default_manager.filter(collection=collection, is_current=True, external_id__in=names)
    return dict(found.values_list("external_id", "pk"))


def _import_query(query: Query, author: Assessor, rows: Sequence[AspectRow], documents: dict[str, int]) -> bool:
    """Take the file's set for one query; return False when the query has exactly that already."""
    entries: Entries = tuple(AspectSnapshot(row.aspect, row.text, row.rationale, row.importance) for row in rows)
    wanted = {(documents[name], row.aspect) for row in rows for name in row.documents}
    held = lock_aspects(query)
    standing = {key: bool(one.grade) for key, one in held.current_judgments([e.id for e in entries]).items()}
    decisions = [RevisionDecision(*key, True) for key in sorted(wanted) if not standing.get(key)]
    decisions += [RevisionDecision(*key, None) for key, keeps in standing.items() if keeps and key not in wanted]
    if entries == held.entries and not decisions:
        return False
    held.revise(author, Act.IMPORT, AspectChange(entries, decisions))
    return True


ROWS = read_sql(__file__, "read_aspects")


def export_lines(collection: Collection) -> Iterator[str]:
    """Yield the lines of the aspects file: queries and documents by id, aspects in their order."""
    with connection.cursor() as cursor:
        cursor.execute(ROWS, {"collection": collection.pk, "relevant_from": collection.relevant_from})
        while rows := cursor.fetchmany(1_000):
            for row in rows:
                yield aspect_line(row)


def export_aspects(collection: Collection, path: Path) -> int:
    """Write the aspects file; return the number of lines."""
    # Written beside and renamed, so that nobody ever reads half a file.
    part = path.with_name(f".{path.name}.part")
    count = 0
    with part.open("w", encoding="utf-8") as file:
        for one in export_lines(collection):
            file.write(one)
            count += 1
    part.replace(path)
    record_act(None, "aspects.exported", collection, lines=count)
    return count
