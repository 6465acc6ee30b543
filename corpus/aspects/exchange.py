"""Import and export of aspects with their documents, for the command `aspects`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from corpus.aspects.entries import AspectSnapshot, Entries
from corpus.aspects.files import aspect_line, by_query, parse_aspects, refuse_bad_lines
from corpus.aspects.revising import Act, AspectChange, RevisionDecision, lock_aspects
from corpus.collections.audit_log import record_act
from corpus.formats.files import FileSource
from corpus.models import Assessor, Collection, Document, Query
from store.sql import read_sql

IMPORTER = "aspects"  # The name of the assessor of imported sets.


@transaction.atomic
def import_aspects(collection: Collection, path: Path) -> dict[str, Any]:
    """Import a file of aspects, which replaces the sets of its queries. A single bad line rejects the whole file.

    A kept document that the file does not list under an aspect is no longer kept there; discarded
    ones stay discarded. Earlier sets stay in the history and can be restored by undo. Return counts
    for the command's JSON output.
    """
    source = FileSource(path)
    rows, problems = parse_aspects(source)
    queries = _primary_keys(Query, collection, {row.query for row in rows})
    documents = _primary_keys(Document, collection, {name for row in rows for name in row.documents})
    # All problems are reported at once, including unknown ids, before any query is changed.
    problems += [(row.line, f'no query has the id "{row.query}"') for row in rows if row.query not in queries]
    references = [(row.line, name) for row in rows for name in row.documents]
    problems += [(line, f'no document has the id "{name}"') for line, name in references if name not in documents]
    refuse_bad_lines(source, problems)
    author, _ = Assessor.objects.get_or_create(collection=collection, kind=Assessor.Kind.HUMAN_IMPORT, name=IMPORTER)
    rows_by_query = by_query(rows)
    changed_count = 0
    for query_name, aspect_rows in rows_by_query.items():
        entries: Entries = tuple(
            AspectSnapshot(row.aspect, row.text, row.rationale, row.importance) for row in aspect_rows
        )
        aspect_set = lock_aspects(Query.objects.get(pk=queries[query_name]))
        judgments = aspect_set.current_judgments([entry.id for entry in entries])
        is_kept = {key: bool(judgment.grade) for key, judgment in judgments.items()}
        file_pairs = {(documents[name], row.aspect) for row in aspect_rows for name in row.documents}
        decisions = [RevisionDecision(*key, True) for key in sorted(file_pairs) if not is_kept.get(key)]
        decisions += [RevisionDecision(*key, None) for key, keep in is_kept.items() if keep and key not in file_pairs]
        if entries != aspect_set.entries or decisions:
            aspect_set.revise(author, Act.IMPORT, AspectChange(entries, decisions))
            changed_count += 1
    record_act(
        None, "aspects.imported", collection, queries=len(rows_by_query), aspects=len(rows), changed=changed_count
    )
    return {
        "collection": collection.name,
        "queries": len(rows_by_query),
        "aspects": len(rows),
        "documents": sum(len(row.documents) for row in rows),
        "changed": changed_count,
    }


def _primary_keys(model: type[Query] | type[Document], collection: Collection, names: set[str]) -> dict[str, int]:
    """Return primary keys by external id, for those names that are in the collection."""
    rows = model._default_manager.filter(collection=collection, is_current=True, external_id__in=names)
    return dict(rows.values_list("external_id", "pk"))


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
    # Renamed when complete, so that nobody reads half a file.
    partial_path = path.with_name(f".{path.name}.part")
    count = 0
    with partial_path.open("w", encoding="utf-8") as file:
        for line in export_lines(collection):
            file.write(line)
            count += 1
    partial_path.replace(path)
    record_act(None, "aspects.exported", collection, lines=count)
    return count
