"""Documents, queries and pairs from the rows of a table, and the records that they are. Pure."""

import json
import math
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from django.utils.translation import gettext as _

from corpus.formats.cell_values import as_metadata, as_texts
from corpus.formats.files import TEXT, FileSource
from corpus.formats.grade_values import GradeReader
from corpus.formats.json_rows import OTHER
from corpus.importing.tables import METADATA, Table, read_rows, require_fields

_TRIPLE = (("positive", "positive_id", 1), ("negative", "negative_id", 0))  # Text, id and grade.


class TextRecord(NamedTuple):
    """A document or a query as it enters. `metadata` and `answers` are JSON texts."""

    line: int
    id: str
    title: str
    text: str
    metadata: str
    hash: str
    answers: str = "[]"
    instruction: str = ""


class CandidateRecord(NamedTuple):
    """A line of --pairs."""

    line: int
    query: str
    document: str
    teacher_score: float | None
    gold: int | None


def content_hash(*parts: str) -> str:
    """Return the sha256, in hex, of all that a reader sees. NUL is in no part, so other parts never join alike."""
    return sha256("\0".join(parts).encode()).hexdigest()


def read_documents(source: FileSource, table: Table) -> Iterator[TextRecord]:
    """Yield the documents of a table; one without a column of ids gets them from the text."""
    is_triple = "positive" in table.places
    require_fields(source, table, ("positive", "negative") if is_triple else ("text",))
    seen: dict[str, tuple[int, str]] = {}
    for line, row in read_rows(source, table):
        if is_triple:
            found = [TextRecord(line, _hash_text("", text), "", text, "{}", content_hash("", text))
                     for field, _id, _grade in _TRIPLE for text in as_texts(_cell(table, row, field))]  # fmt: skip
        else:
            title, text = _text(table, row, "title"), _text(table, row, "text")
            name = _document_id(source, table, line, row)
            found = [TextRecord(line, name, title, text, _metadata(table, row), content_hash(title, text))]
        for record in found:
            if not _is_repeated(source, table, record, seen, "doc_id"):
                yield record


def read_queries(source: FileSource, table: Table) -> Iterator[TextRecord]:
    """Yield the queries of a table; one without a column of ids gets them from the text."""
    require_fields(source, table, ("query",))
    seen: dict[str, tuple[int, str]] = {}
    for line, row in read_rows(source, table):
        text, instruction = _text(table, row, "query"), _cell(table, row, "instruction")
        answers = _answers(_cell(table, row, "answers"))
        record = TextRecord(
            line, _query_id(source, table, line, row), "", text, _metadata(table, row),
            content_hash(text, instruction, *answers), json.dumps(answers, ensure_ascii=False), instruction,
        )  # fmt: skip
        if not _is_repeated(source, table, record, seen, "query_id"):
            yield record


def read_pairs(source: FileSource, table: Table, reader: GradeReader) -> Iterator[CandidateRecord]:
    """Yield the pairs of a table, with scores and grades where it has them; a triple is two pairs, graded 1 and 0.

    Grades whose assessors the table names are no gold: they are read as judgments.
    """
    if triple := [one for one in _TRIPLE if {one[0], one[1]} & table.places.keys()]:
        yield from _read_triples(source, table, [(text, name, grade) for text, name, grade in triple])
        return
    for name, text in (("query_id", "query"), ("doc_id", "text")):
        if text not in table.places:
            require_fields(source, table, (name,))
    for line, row in read_rows(source, table):
        query, document = read_ids(source, table, line, row)
        score, grade = _cell(table, row, "score").strip(), _cell(table, row, "grade").strip()
        gold = None
        if grade and not table.has_assessors:
            gold, problem, _kind = reader.read(line, grade)
            if problem:
                raise source.bad(line, problem)
        yield CandidateRecord(line, query, document, _read_score(source, line, score), gold)


def read_ids(source: FileSource, table: Table, line: int, row: list[str]) -> tuple[str, str]:
    """Return the ids of a row's query and document; one without a column of ids has its id from the text."""
    return _query_id(source, table, line, row), _document_id(source, table, line, row)


def _read_triples(source: FileSource, table: Table, sides: list[tuple[str, str, int]]) -> Iterator[CandidateRecord]:
    if "query" not in table.places:
        require_fields(source, table, ("query_id",))
    for line, row in read_rows(source, table):
        query = _query_id(source, table, line, row)
        for text, name, grade in sides:
            if text in table.places:
                documents = [_hash_text("", one) for one in as_texts(_cell(table, row, text))]
            else:
                documents = [source.identifier(line, one, name) for one in as_texts(_cell(table, row, name).strip())]
            for document in documents:
                yield CandidateRecord(line, query, document, None, grade)


def _hash_text(*parts: str) -> str:
    """Return the id of a text that has none in its file."""
    # 64 bits: among ten million texts two share an id with a chance of 1 in 370,000, and are then refused.
    return content_hash(*parts)[:16]


def _cell(table: Table, row: list[str], field: str) -> str:
    place = table.places.get(field)
    return "" if place is None else row[place]


def _text(table: Table, row: list[str], field: str) -> str:
    """Return a text; the parts of a list on lines of their own, where the file can hold lists."""
    cell = _cell(table, row, field)
    return cell if table.form == TEXT else "\n".join(as_texts(cell))


def _answers(cell: str) -> list[str]:
    """Return the answers of a cell: a JSON list, or one a line, for a cell has no other mark that no answer holds."""
    listed = as_texts(cell)
    return listed if listed != [cell] else [one.strip() for one in cell.split("\n") if one.strip()]


def _document_id(source: FileSource, table: Table, line: int, row: list[str]) -> str:
    if "doc_id" in table.places:
        return source.identifier(line, _cell(table, row, "doc_id").strip(), "doc_id")
    return _hash_text(_text(table, row, "title"), _text(table, row, "text"))


def _query_id(source: FileSource, table: Table, line: int, row: list[str]) -> str:
    if "query_id" in table.places:
        return source.identifier(line, _cell(table, row, "query_id").strip(), "query_id")
    return _hash_text(_text(table, row, "query"))


def _is_repeated(
    source: FileSource, table: Table, record: TextRecord, seen: dict[str, tuple[int, str]], id_field: str
) -> bool:
    """Return whether an earlier row gave this id the same text. Raises BadInput where it gave it another one."""
    # Rows repeat a text where each is a pair, or where the text is its own id; elsewhere the importer finds it.
    if not table.repeats_texts and id_field in table.places:
        return False
    if record.id not in seen:
        seen[record.id] = (record.line, record.hash)
        return False
    line, before = seen[record.id]
    if before != record.hash:
        said = _('"%(id)s" has another text than in %(place)s')
        raise source.bad(record.line, said % {"id": record.id, "place": source.place(line)})
    return True


def _metadata(table: Table, row: list[str]) -> str:
    """Return the other columns as JSON; of a row that holds a pair nobody knows whose they are."""
    if table.repeats_texts:
        return "{}"
    kept: dict[str, object] = {}
    for place, name in enumerate(table.header):
        if table.fields[name] == METADATA and row[place]:
            # An object in a column of this name is all of the metadata, as exports write it.
            found = as_metadata(row[place]) if name in ("metadata", OTHER) else {}
            kept |= found or {name: row[place]}
    return json.dumps(kept, ensure_ascii=False)


def _read_score(source: FileSource, line: int, text: str) -> float | None:
    if not text:
        return None
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise source.bad(line, _("the score is not a finite number: %(value)r") % {"value": text[:40]})
    return score
