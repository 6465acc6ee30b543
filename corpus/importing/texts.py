"""Storing documents and queries in the collection: as new rows, unchanged ones, or new versions."""

import struct
from collections.abc import Callable, Iterable, Iterator

import psycopg
from django.db import transaction
from django.utils.translation import gettext as _

from corpus.formats.files import FileSource
from corpus.importing import staging
from corpus.importing.left_out import LeftOut
from corpus.importing.staging import ImportProgress, escape_copy_text, fetch_one
from corpus.importing.table_records import TextRecord
from corpus.models import Collection, Document, Query
from store.sql import execute, fetch_row, fetch_rows

Rows = Callable[[FileSource], Iterator[TextRecord]]
Table = type[Document] | type[Query]
# The columns that only one of the two tables has, and their values from the staged row `s`.
OWN_COLUMNS: dict[Table, tuple[str, str]] = {
    Document: ("title, html", "s.title, s.html"),
    Query: (
        "answers, answers_html, instruction",
        "ARRAY(SELECT a FROM jsonb_array_elements_text(s.answers) WITH ORDINALITY AS t(a, n) ORDER BY n), "
        "ARRAY(SELECT a FROM jsonb_array_elements_text(s.answers_html) WITH ORDINALITY AS t(a, n) ORDER BY n), "
        "s.instruction",
    ),
}


def move_in(
    collection: Collection,
    table: Table,
    source: FileSource,
    rows: Rows,
    *,
    update: bool,
    left_out: LeftOut,
    progress: ImportProgress,
    same_queries: dict[str, str] | None = None,
) -> tuple[int, int, int]:
    """Import the texts of a file; return the numbers of new, updated and unchanged ones.

    `same_queries`: of a file of pairs, to be filled with the ids of the collection's queries by the ids that
    were made from their texts, because the file has none.

    1. Into an empty table, copy the documents directly.
    2. Otherwise stage the texts, and remove repeated rows.
    3. Update changed texts, and insert new ones.

    Raises BadInput if an id has two texts, or if a text changed without `update`.
    """
    name = table._meta.db_table
    is_filled = fetch_one(f"SELECT 1 FROM {name} WHERE collection_id = %(c)s LIMIT 1", c=collection.pk)
    # In an empty table nothing can be changed, and the unique index finds repeated ids.
    if table is Document and not is_filled:
        try:
            with transaction.atomic():
                # Directly into their table, so that the bytes are written only once.
                columns = "collection_id, version, is_current, external_id, title, text, content_hash, metadata, html"
                tuples = _binary_tuples(collection.pk, rows(source))
                return staging.copy_binary(f"corpus_document ({columns})", tuples, "documents", progress), 0, 0
        # Staging finds out which rows are repeated.
        except psycopg.errors.UniqueViolation:
            pass
    staging.create_temporary_table(
        "import_text",
        "line int, external_id text, title text, text text, metadata jsonb, content_hash text, "
        "answers jsonb, instruction text, html text, answers_html jsonb",
    )
    escape = escape_copy_text
    lines = (
        f"{r.line}\t{escape(r.id)}\t{escape(r.title)}\t{escape(r.text)}\t{escape(r.metadata)}\t{r.hash}"
        f"\t{escape(r.answers)}\t{escape(r.instruction)}\t{escape(r.html)}\t{escape(r.answers_html)}\n"
        for r in rows(source)
    )
    read = staging.copy_lines("import_text", lines, str(table._meta.verbose_name_plural), progress)
    execute("ANALYZE import_text")
    # Counting is cheap; finding the lines sorts all rows and is done only for repeated ids.
    if fetch_row("SELECT count(DISTINCT external_id) FROM import_text") != (read,):
        noun = "documents" if table is Document else "queries"
        read -= left_out.remove_repeated(noun, "import_text", "external_id, content_hash, metadata")
        if repeated := staging.first_repeated("import_text", "external_id"):
            message = _('the id "%(id)s" is already in %(place)s, with another text or other metadata')
            raise source.bad(repeated[0], message % {"id": repeated[2], "place": source.name_line(repeated[1])})
    if is_filled and same_queries is not None:
        same_queries |= _leave_out_same(collection, source, update=update)
    versions, updated = _update_changed(collection, name, source, update=update)
    # The rows whose id has no current version: new ids, and new versions of those that changed.
    columns, values = OWN_COLUMNS[table]
    inserted = execute(
        f"""INSERT INTO {name}
              (collection_id, external_id, text, metadata, content_hash, is_current, version, {columns})
            SELECT %(c)s, s.external_id, s.text, s.metadata, s.content_hash, true,
                   1 + COALESCE((SELECT max(version) FROM {name} t
                        WHERE t.collection_id = %(c)s AND NOT t.is_current AND t.external_id = s.external_id), 0),
                   {values}
            FROM import_text s
            WHERE NOT EXISTS (SELECT 1 FROM {name} t
                  WHERE t.collection_id = %(c)s AND t.is_current AND t.external_id = s.external_id)
            ORDER BY s.line""",
        c=collection.pk,
    )
    new = inserted - versions
    return new, updated, read - new - updated


# A query of a file of pairs that has only a text is the collection's query with this text; `made`: its id is made
# from its text (corpus.importing.table_records).
SAME_QUERIES = """
SELECT s.line, s.external_id AS id, s.external_id = left(encode(sha256(convert_to(s.text, 'UTF8')), 'hex'), 16) AS made,
       array_agg(q.external_id ORDER BY q.external_id) AS ids
FROM import_text s JOIN corpus_query q ON q.collection_id = %(c)s AND q.is_current AND q.text = s.text
WHERE s.answers = '[]' AND s.instruction = '' AND s.metadata = '{}'
GROUP BY s.line, s.external_id, s.text
"""


def _leave_out_same(collection: Collection, source: FileSource, *, update: bool) -> dict[str, str]:
    """Remove staged queries that the collection has; return its ids by those that were made from the texts.

    Raises BadInput where several of its queries have the text.
    """
    same_queries, left_out = {}, []
    for line, name, is_made, ids in fetch_rows(SAME_QUERIES, c=collection.pk):
        # With `update`, a query without answers replaces one with answers.
        if name in ids and (update or is_made):
            continue
        if name not in ids and is_made:
            if len(ids) > 1:
                message = _("the queries %(ids)s of the collection have this text; name the query by its id")
                raise source.bad(line, message % {"ids": ", ".join(ids[:10])})
            same_queries[name] = ids[0]
        elif name not in ids:
            continue
        left_out.append(name)
    execute("DELETE FROM import_text WHERE external_id = ANY(%(names)s)", names=left_out)
    return same_queries


def _binary_tuples(collection: int, rows: Iterable[TextRecord]) -> Iterator[bytes]:
    """Yield documents as binary tuples of COPY: the number of fields, then lengths and bytes."""
    # Nine fields; the first three are the same in every row: the collection, version 1, is_current.
    head = struct.pack(">hiqiiib", 9, 8, collection, 4, 1, 1, 1)
    length = struct.Struct(">i").pack
    hash_length = length(64)
    for row in rows:
        name, title, text = row.id.encode(), row.title.encode(), row.text.encode()
        metadata, html = row.metadata.encode(), row.html.encode()
        # jsonb is sent as one byte, the version of the format, and its text.
        yield b"%b%b%b%b%b%b%b%b%b%b\1%b%b%b" % (
            head, length(len(name)), name, length(len(title)), title, length(len(text)), text,
            hash_length, row.hash.encode(), length(len(metadata) + 1), metadata,
            length(len(html)), html,
        )  # fmt: skip


def _update_changed(collection: Collection, table: str, source: FileSource, *, update: bool) -> tuple[int, int]:
    """Update changed rows; return the numbers of new versions and of all changes. Raises BadInput without `update`."""
    same = "t.collection_id = %(c)s AND t.external_id = s.external_id"
    values = {"c": collection.pk}
    changed = fetch_one(
        f"""SELECT s.line, s.external_id, t.content_hash <> s.content_hash
            FROM import_text s JOIN {table} t ON {same} AND t.is_current
            WHERE t.content_hash <> s.content_hash OR t.metadata <> s.metadata ORDER BY s.line LIMIT 1""",
        **values,
    )
    if changed and not update:
        message = (
            _('"%(id)s" exists with different text; choose to update what changed')
            if changed[2]
            else _('"%(id)s" exists with different metadata; choose to update what changed')
        )
        raise source.bad(changed[0], message % {"id": changed[1]}, "update")
    if not changed:
        return 0, 0
    metadata_updates = execute(
        f"""UPDATE {table} t SET metadata = s.metadata FROM import_text s
            WHERE {same} AND t.is_current AND t.content_hash = s.content_hash AND t.metadata <> s.metadata""",
        **values,
    )
    replaced = execute(
        f"""UPDATE {table} t SET is_current = false FROM import_text s
            WHERE {same} AND t.is_current AND t.content_hash <> s.content_hash""",
        **values,
    )
    # If an earlier version had the same text, it becomes current again, and no row is added.
    restored = execute(
        f"""UPDATE {table} t SET is_current = true, metadata = s.metadata FROM import_text s
            WHERE {same} AND NOT t.is_current AND t.content_hash = s.content_hash""",
        **values,
    )
    return replaced - restored, metadata_updates + replaced
