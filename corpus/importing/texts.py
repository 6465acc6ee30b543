"""Documents and queries: into the collection, as new rows, unchanged ones, or new versions."""

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import psycopg

from corpus.importing.files import FileSource
from corpus.importing.records import TextRecord, first_duplicate
from corpus.importing.staging import (
    ImportProgress,
    copy_binary,
    copy_lines,
    create_temporary_table,
    escape_copy_text,
    execute_sql,
    fetch_number,
    fetch_one,
)
from corpus.models import Collection

Rows = Callable[[FileSource], Iterator[TextRecord]]


@dataclass(frozen=True, slots=True)
class TextTable:
    """Where rows of a kind go, and which columns of the stage fill it."""

    what: str
    name: str
    columns: str
    values: str


DOCUMENTS = TextTable("documents", "corpus_document", "title", "s.title")
QUERIES = TextTable(
    "queries",
    "corpus_query",
    "answers, instruction",
    "ARRAY(SELECT a FROM jsonb_array_elements_text(s.answers) WITH ORDINALITY AS t(a, n) ORDER BY n), s.instruction",
)


@dataclass(frozen=True, slots=True)
class Moved:
    """What an import did to the documents or queries of a collection."""

    read: int
    new: int
    updated: int


def move_in(
    collection: Collection, table: TextTable, source: FileSource, rows: Rows, *, update: bool, progress: ImportProgress
) -> Moved:
    """Import what `rows` reads from `source`. Raises BadInput with the line for a duplicate or changed id."""
    filled = fetch_one(f"SELECT 1 FROM {table.name} WHERE collection_id = %(c)s LIMIT 1", {"c": collection.pk})
    if table is DOCUMENTS and not filled:
        return _copy_directly(collection, source, rows, progress)
    create_temporary_table(
        "import_text",
        "line int, external_id text, title text, text text, metadata jsonb, content_hash text, "
        "answers jsonb, instruction text",
    )
    lines = (
        f"{r.line}\t{escape_copy_text(r.id)}\t{escape_copy_text(r.title)}\t{escape_copy_text(r.text)}\t{escape_copy_text(r.metadata)}\t{r.hash}"
        f"\t{escape_copy_text(r.answers)}\t{escape_copy_text(r.instruction)}\n"
        for r in rows(source)
    )
    read = copy_lines("import_text", lines, table.what, progress)
    execute_sql("ANALYZE import_text")
    _refuse_duplicates(source, read)
    updated = _update_changed(collection, table, source, update=update)
    new = _insert_new(collection, table)
    return Moved(read, new - updated[0], updated[1])


def _copy_directly(collection: Collection, source: FileSource, rows: Rows, progress: ImportProgress) -> Moved:
    """The first documents of a collection go to their table at once: the bytes are written only once."""
    columns = "collection_id, version, is_current, external_id, title, text, content_hash, metadata"
    target = f"corpus_document ({columns})"
    try:
        read = copy_binary(target, _binary_tuples(collection.pk, rows(source)), "documents", progress)
    except psycopg.errors.UniqueViolation:
        raise first_duplicate(source, rows) from None
    return Moved(read, read, 0)


def _binary_tuples(collection: int, rows: Iterable[TextRecord]) -> Iterator[bytes]:
    """Documents as COPY's binary tuples: the number of fields, then each field's length in bytes and its bytes."""
    head = struct.pack(">hiqiiib", 8, 8, collection, 4, 1, 1, 1)
    length = struct.Struct(">i").pack
    hashed = length(64)
    for row in rows:
        name, title, text = row.id.encode(), row.title.encode(), row.text.encode()
        metadata = row.metadata.encode()
        # jsonb travels as its text behind one byte, the version of the format.
        yield (
            b"%b%b%b%b%b%b%b%b%b%b\1%b"
            % (
                head,
                length(len(name)),
                name,
                length(len(title)),
                title,
                length(len(text)),
                text,
                hashed,
                row.hash.encode(),
                length(len(metadata) + 1),
                metadata,
            )
        )


def _refuse_duplicates(source: FileSource, read: int) -> None:
    if fetch_number("SELECT count(DISTINCT external_id) FROM import_text") == read:
        return
    found = fetch_one(
        """SELECT line, external_id, first FROM (
             SELECT line, external_id, min(line) OVER same AS first, row_number() OVER same AS place
             FROM import_text WINDOW same AS (PARTITION BY external_id ORDER BY line)) numbered
           WHERE place > 1 ORDER BY line LIMIT 1"""
    )
    if found:
        raise source.bad(found[0], f'the id "{found[1]}" stands already in line {found[2]}')


def _update_changed(collection: Collection, table: TextTable, source: FileSource, *, update: bool) -> tuple[int, int]:
    """Bring changed rows up to date, or refuse; (rows that get a new version, all changed rows)."""
    same = "t.collection_id = %(c)s AND t.external_id = s.external_id"
    values = {"c": collection.pk}
    changed = fetch_one(
        f"""SELECT s.line, s.external_id, t.content_hash <> s.content_hash
            FROM import_text s JOIN {table.name} t ON {same} AND t.is_current
            WHERE t.content_hash <> s.content_hash OR t.metadata <> s.metadata ORDER BY s.line LIMIT 1""",
        values,
    )
    if changed and not update:
        other = "text" if changed[2] else "metadata"
        problem = f'"{changed[1]}" stands in the collection with other {other}; --update takes the new one'
        raise source.bad(changed[0], problem)
    if not changed:
        return 0, 0
    described = execute_sql(
        f"""UPDATE {table.name} t SET metadata = s.metadata FROM import_text s
            WHERE {same} AND t.is_current AND t.content_hash = s.content_hash AND t.metadata <> s.metadata""",
        values,
    )
    retired = execute_sql(
        f"""UPDATE {table.name} t SET is_current = false FROM import_text s
            WHERE {same} AND t.is_current AND t.content_hash <> s.content_hash""",
        values,
    )
    back = execute_sql(
        f"""UPDATE {table.name} t SET is_current = true, metadata = s.metadata FROM import_text s
            WHERE {same} AND NOT t.is_current AND t.content_hash = s.content_hash""",
        values,
    )
    return retired - back, described + retired


def _insert_new(collection: Collection, table: TextTable) -> int:
    """Rows whose id has no current version; the number of them."""
    return execute_sql(
        f"""INSERT INTO {table.name}
              (collection_id, external_id, text, metadata, content_hash, is_current, version, {table.columns})
            SELECT %(c)s, s.external_id, s.text, s.metadata, s.content_hash, true,
                   1 + COALESCE((SELECT max(version) FROM {table.name} t
                        WHERE t.collection_id = %(c)s AND NOT t.is_current AND t.external_id = s.external_id), 0),
                   {table.values}
            FROM import_text s
            WHERE NOT EXISTS (SELECT 1 FROM {table.name} t
                  WHERE t.collection_id = %(c)s AND t.is_current AND t.external_id = s.external_id)
            ORDER BY s.line""",
        {"c": collection.pk},
    )
