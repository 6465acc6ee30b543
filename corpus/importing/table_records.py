"""Readers of documents, queries and pairs from the rows of a table, and their records. Pure."""

import json
import math
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from corpus.formats import passages
from corpus.formats.cell_values import StructuredCell, parse_cell
from corpus.formats.files import FileSource
from corpus.formats.grade_values import GradeReader
from corpus.formats.json_rows import OTHER
from corpus.formats.passages import TextValue
from corpus.importing.columns import METADATA
from corpus.importing.tables import Table, read_rows, require_fields

RELEVANT, OTHER_GRADE = "relevant", "0"  # The grades of the two sides of a triple.
# The fields of texts, ids and teacher's scores of each side, and its grade.
_SIDES = (
    ("positive", "positive_id", "positive_score", RELEVANT),
    ("negative", "negative_id", "negative_score", OTHER_GRADE),
)


class TextRecord(NamedTuple):
    """A document or a query of a file; `metadata`, `answers` and `answers_html` are JSON texts."""

    line: int
    id: str
    title: str
    text: str
    metadata: str
    hash: str
    answers: str = "[]"
    instruction: str = ""
    html: str = ""  # The source of a document's text that was HTML.
    answers_html: str = "[]"


class CandidateRecord(NamedTuple):
    """A pair of a file."""

    line: int
    query: str
    document: str
    teacher_score: float | None
    gold: int | None


def content_hash(*parts: str) -> str:
    """Return the sha256, in hex, of all that a reader sees. No part contains NUL, which therefore separates them."""
    return sha256("\0".join(parts).encode()).hexdigest()


class Candidate(NamedTuple):
    """A document of a row, as far as the row describes it; `grade` is its text, RELEVANT, or "" for none."""

    id: str
    title: str
    text: str | None
    grade: str
    score: str


def read_documents(source: FileSource, table: Table) -> Iterator[TextRecord]:
    """Yield the documents of a table; without a column of ids, ids are made from the texts."""
    if not table.has_lists:
        require_fields(source, table, ("text",))
    seen: dict[str, tuple[int, str]] = {}
    for line, row in read_rows(source, table):
        if table.has_lists:
            candidates = read_candidates(source, table, line, row)
            texts = [(entry.id, entry.title, entry.text) for entry in candidates if entry.text is not None]
            records = [
                TextRecord(line, name, title, text, "{}", content_hash(title, text)) for name, title, text in texts
            ]
        else:
            name, title, text = _document(source, table, line, row)
            records = [TextRecord(line, name, title, text, _metadata(table, row), content_hash(title, text))]
        for record in records:
            if not _is_repeated(source, table, record, seen, "doc_id"):
                yield record


def read_queries(source: FileSource, table: Table) -> Iterator[TextRecord]:
    """Yield the queries of a table; without a column of ids, ids are made from the texts."""
    require_fields(source, table, ("query",))
    seen: dict[str, tuple[int, str]] = {}
    for line, row in read_rows(source, table):
        name, text = read_query(source, table, line, row)
        instruction = _text(source, table, line, row, "instruction")
        answers = _answers(source, table, line, row)
        record = TextRecord(
            line, name, "", text, _metadata(table, row),
            content_hash(text, instruction, *answers), json.dumps(answers, ensure_ascii=False), instruction,
        )  # fmt: skip
        if not _is_repeated(source, table, record, seen, "query_id"):
            yield record


def read_pairs(source: FileSource, table: Table, reader: GradeReader) -> Iterator[CandidateRecord]:
    """Yield the pairs of a table with scores and grades; grades of named assessors are judgments, and no gold."""
    if not table.has_lists and "text" not in table.places:
        require_fields(source, table, ("doc_id",))
    if "query" not in table.places:
        require_fields(source, table, ("query_id",))
    for line, row in read_rows(source, table):
        query, text = read_query(source, table, line, row)
        for candidate in read_candidates(source, table, line, row):
            gold = None
            if candidate.grade == RELEVANT:
                gold = max(1, reader.relevant_from)
            elif candidate.grade and not table.has_assessors:
                gold, problem, _kind = reader.read(line, candidate.grade)
                if problem:
                    # The line of a list does not show which of its documents this is.
                    names = f'"{(text or query)[:60]}", {candidate.id}: ' if table.has_lists else ""
                    raise source.bad(line, f"{names}{problem}")
            yield CandidateRecord(line, query, candidate.id, _read_score(source, line, candidate.score), gold)


def read_candidates(source: FileSource, table: Table, line: int, row: list[str]) -> Iterator[Candidate]:
    """Yield the documents of a row: one, or those of its lists."""
    if not table.has_lists:
        text = None
        if "doc_id" in table.places and "text" not in table.places:
            name = source.identifier(line, _cell(table, row, "doc_id").strip(), "doc_id")
            title = ""
        else:
            name, title, text = _document(source, table, line, row)
        grade, score = _cell(table, row, "grade").strip(), _cell(table, row, "score").strip()
        is_judged = _cell(table, row, "assumed") not in ("true", "True", "TRUE", "1")
        yield Candidate(name, title, text, grade if is_judged else "", score)
        return
    for texts, ids, scores, grade in _SIDES:
        sides = [[text, ids, scores] for text in (texts, ids) if text in table.places]
        yield from _read_side(source, table, line, row, (texts, ids, scores), grade) if sides else ()
    if "passages" in table.places or table.lists_ids:
        yield from _read_side(source, table, line, row, ("passages", "doc_id", "score"), "")


def _read_side(
    source: FileSource, table: Table, line: int, row: list[str], fields: tuple[str, str, str], grade: str
) -> Iterator[Candidate]:
    """Yield the documents in the columns of texts, ids and scores; `grade` is that of all of them, or ""."""
    documents = [
        document
        for position in table.columns.get(fields[0], ())
        for document in _passages(source, table, line, row, position)
    ]
    ids = [
        document
        for position in table.columns.get(fields[1], ())
        for document in _passages(source, table, line, row, position)
    ]
    if not documents:
        documents = [document if document.id else TextValue(id=(document.text or "").strip()) for document in ids]
    elif ids:
        names = [document.id or (document.text or "").strip() for document in ids]
        documents = [
            document._replace(id=name) for document, name in _side_by_side(source, line, documents, names, fields[1])
        ]
    scores = [value for position in table.columns.get(fields[2], ()) for value in _values(row, position)]
    grades = (
        [value for position in table.columns.get("grade", ()) for value in _values(row, position)] if not grade else []
    )
    if scores:
        documents = [
            document._replace(score=value)
            for document, value in _side_by_side(source, line, documents, scores, fields[2])
        ]
    if grades:
        documents = [
            document._replace(grade=value)
            for document, value in _side_by_side(source, line, documents, grades, "grade")
        ]
    for document in documents:
        name = (
            source.identifier(line, document.id, "doc_id")
            if document.id
            else _hash_text(document.title, document.text or "")
        )
        # A document that was in a run but not judged has no grade, rather than the grade 0.
        yield Candidate(
            name, document.title, document.text, "" if document.assumed else grade or document.grade, document.score
        )


def _values(row: list[str], position: int) -> list[str]:
    return passages.read_values(row[position]) if row[position].strip() else []


def _side_by_side(
    source: FileSource, line: int, documents: list[TextValue], values: list[str], field: str
) -> Iterator[tuple[TextValue, str]]:
    if len(documents) != len(values):
        message = _('%(n)s documents, and %(values)s values of "%(field)s"; each document has one')
        raise source.bad(line, message % {"n": len(documents), "values": len(values), "field": field})
    return zip(documents, values, strict=True)


def _passages(source: FileSource, table: Table, line: int, row: list[str], position: int) -> list[TextValue]:
    try:
        return passages.read_passages(row[position])
    except passages.NoPassageError as error:
        raise _no_passage(source, line, table.header[position], error) from None


def _no_passage(source: FileSource, line: int, header: str, error: passages.NoPassageError) -> Exception:
    message = _('"%(header)s" contains no readable text: %(value)s; write it as {"id", "title", "text"}')
    return source.bad(line, message % {"header": header, "value": error})


def read_query(source: FileSource, table: Table, line: int, row: list[str]) -> tuple[str, str]:
    """Return the id and the text of a row's query; without an id, one is made from the text."""
    cell, own_id = _cell(table, row, "query"), ""
    if cell[:1] in ("{", "[") and (json_object := _read_object(source, table, line, cell, "query")) is not None:
        own_id, cell = json_object.id, json_object.text or ""
    if "query_id" in table.places:
        own_id = _cell(table, row, "query_id").strip()
        return source.identifier(line, own_id, "query_id"), cell
    return source.identifier(line, own_id, "query_id") if own_id else _hash_text(cell), cell


def _document(source: FileSource, table: Table, line: int, row: list[str]) -> tuple[str, str, str]:
    """Return the id, the title and the text of a row's document."""
    own_id, title, text = "", _text(source, table, line, row, "title"), _cell(table, row, "text")
    if text[:1] in ("{", "[") and (json_object := _read_object(source, table, line, text, "text")) is not None:
        own_id, title, text = json_object.id, title or json_object.title, json_object.text or ""
    if "doc_id" in table.places:
        return source.identifier(line, _cell(table, row, "doc_id").strip(), "doc_id"), title, text
    return source.identifier(line, own_id, "doc_id") if own_id else _hash_text(title, text), title, text


def _read_object(source: FileSource, table: Table, line: int, cell: str, field: str) -> TextValue | None:
    """Return the text and id in a list or object; None for a text that only looks like one."""
    value = parse_cell(cell)
    # In a text file, only an object with a text counts.
    if not isinstance(cell, StructuredCell) and not isinstance(value, dict):
        return None
    try:
        return passages.read_query(cell) if field == "query" else passages.read_document(cell)
    except passages.NoPassageError as error:
        if not isinstance(cell, StructuredCell):
            return None
        raise _no_passage(source, line, table.header[table.places[field]], error) from None


def _hash_text(*parts: str) -> str:
    """Return an id for a text that has none in its file."""
    # 64 bits: among ten million texts, two share an id with a chance of 1 in 370,000, and are then rejected.
    return content_hash(*parts)[:16]


def _cell(table: Table, row: list[str], field: str) -> str:
    position = table.places.get(field)
    return "" if position is None else row[position]


def _text(source: FileSource, table: Table, line: int, row: list[str], field: str) -> str:
    """Return a text, with the parts of a list on separate lines. Raises BadInput for an object without a text."""
    cell = _cell(table, row, field)
    if isinstance(cell, StructuredCell):
        json_object = _read_object(source, table, line, cell, field)
        return (json_object.text or "") if json_object else ""
    return cell


def _answers(source: FileSource, table: Table, line: int, row: list[str]) -> list[str]:
    """Return the answers of a cell: a JSON list, or one a line, since any other separator may be part of an answer."""
    cell = _cell(table, row, "answers")
    value = parse_cell(cell)
    if isinstance(value, dict):
        # SQuAD's {"text": [...]}, and TriviaQA's {"value", "aliases"}, which repeat answers.
        parts = [value[name] for name in ("text", "value", "aliases", "answer", "answers") if name in value]
        texts = list(dict.fromkeys(_flat_answers(parts)))
        # Questions of SQuAD without an answer have empty lists.
        value = texts if texts or (parts and not any(parts)) else [value]
    if isinstance(value, list) and (
        isinstance(cell, StructuredCell) or all(isinstance(answer, str) for answer in value)
    ):
        texts = list(_flat_answers(value))
        if value and not texts:
            message = _('"%(header)s" contains no readable answer: %(value)s; write a list of texts')
            raise source.bad(line, message % {"header": table.header[table.places["answers"]], "value": cell[:60]})
        return texts
    return [answer.strip() for answer in cell.split("\n") if answer.strip()]


def _flat_answers(values: list[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _flat_answers(value)
        elif isinstance(value, dict) and isinstance(text := value.get("text", value.get("answer")), str):
            yield text
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield str(value)


def _is_repeated(
    source: FileSource, table: Table, record: TextRecord, seen: dict[str, tuple[int, str]], id_field: str
) -> bool:
    """Return whether an earlier row had the same id and text. Raises BadInput if it had the id with another text."""
    # Texts are repeated if each row is a pair, or if ids are made from texts; otherwise the import reports them.
    if not table.repeats_texts and id_field in table.places:
        return False
    if record.id not in seen:
        seen[record.id] = (record.line, record.hash)
        return False
    line, before = seen[record.id]
    if before != record.hash:
        message = _('"%(id)s" has another text than in %(place)s')
        raise source.bad(record.line, message % {"id": record.id, "place": source.name_line(line)})
    return True


def _metadata(table: Table, row: list[str]) -> str:
    """Return the other columns as JSON; of pairs none, since they may belong to the query or the document."""
    if table.repeats_texts:
        return "{}"
    metadata: dict[str, object] = {}
    for position, name in enumerate(table.header):
        if table.fields[name] == METADATA and row[position]:
            # In exports, an object in this column is the whole metadata.
            parsed = parse_cell(row[position])
            value = parsed if isinstance(row[position], StructuredCell) else row[position]
            is_whole = name in ("metadata", OTHER) and isinstance(parsed, dict) and parsed
            metadata |= parsed if is_whole else {name: value}
    return json.dumps(metadata, ensure_ascii=False)


def _read_score(source: FileSource, line: int, text: str) -> float | None:
    if not text:
        return None
    try:
        # Workbooks show shares as 87%.
        score = float(text[:-1]) / 100 if text[-1] == "%" else float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise source.bad(line, _("the score is not a finite number: %(value)r") % {"value": text[:40]})
    return score
