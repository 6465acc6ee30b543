"""Documents, queries and pairs from the rows of a table, and the records that they are. Pure."""

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
# Of each side its texts, ids, teacher's scores, and grade.
_SIDES = (
    ("positive", "positive_id", "positive_score", RELEVANT),
    ("negative", "negative_id", "negative_score", OTHER_GRADE),
)


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


class Candidate(NamedTuple):
    """A document of a row: as much as the row says of it. `grade`: as it is written, RELEVANT, or "" for none."""

    id: str
    title: str
    text: str | None
    grade: str
    score: str


def read_documents(source: FileSource, table: Table) -> Iterator[TextRecord]:
    """Yield the documents of a table; one without a column of ids gets them from the text."""
    if not table.has_lists:
        require_fields(source, table, ("text",))
    seen: dict[str, tuple[int, str]] = {}
    for line, row in read_rows(source, table):
        if table.has_lists:
            found = [TextRecord(line, one.id, one.title, one.text, "{}", content_hash(one.title, one.text))
                     for one in read_candidates(source, table, line, row) if one.text is not None]  # fmt: skip
        else:
            name, title, text = _document(source, table, line, row)
            found = [TextRecord(line, name, title, text, _metadata(table, row), content_hash(title, text))]
        for record in found:
            if not _is_repeated(source, table, record, seen, "doc_id"):
                yield record


def read_queries(source: FileSource, table: Table) -> Iterator[TextRecord]:
    """Yield the queries of a table; one without a column of ids gets them from the text."""
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
    """Yield the pairs of a table, with scores and grades; those of named assessors are judgments, and no gold."""
    if not table.has_lists and "text" not in table.places:
        require_fields(source, table, ("doc_id",))
    if "query" not in table.places:
        require_fields(source, table, ("query_id",))
    for line, row in read_rows(source, table):
        query = read_query(source, table, line, row)[0]
        for one in read_candidates(source, table, line, row):
            gold = None
            if one.grade == RELEVANT:
                gold = max(1, reader.relevant_from)
            elif one.grade and not table.has_assessors:
                gold, problem, _kind = reader.read(line, one.grade)
                if problem:
                    raise source.bad(line, problem)
            yield CandidateRecord(line, query, one.id, _read_score(source, line, one.score), gold)


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
    """Yield documents in columns of texts, ids, scores; `grade`: of all of them."""
    found = [one for place in table.columns.get(fields[0], ()) for one in _passages(source, table, line, row, place)]
    ids = [one for place in table.columns.get(fields[1], ()) for one in _passages(source, table, line, row, place)]
    if not found:
        found = [one if one.id else TextValue(id=(one.text or "").strip()) for one in ids]
    elif ids:
        names = [one.id or (one.text or "").strip() for one in ids]
        found = [one._replace(id=name) for one, name in _side_by_side(source, line, found, names, fields[1])]
    scores = [value for place in table.columns.get(fields[2], ()) for value in _values(row, place)]
    grades = [value for place in table.columns.get("grade", ()) for value in _values(row, place)] if not grade else []
    if scores:
        found = [one._replace(score=value) for one, value in _side_by_side(source, line, found, scores, fields[2])]
    if grades:
        found = [one._replace(grade=value) for one, value in _side_by_side(source, line, found, grades, "grade")]
    for one in found:
        name = source.identifier(line, one.id, "doc_id") if one.id else _hash_text(one.title, one.text or "")
        # What a run named and nobody judged is no document with the grade 0.
        yield Candidate(name, one.title, one.text, "" if one.assumed else grade or one.grade, one.score)


def _values(row: list[str], place: int) -> list[str]:
    return passages.read_values(row[place]) if row[place].strip() else []


def _side_by_side(
    source: FileSource, line: int, found: list[TextValue], values: list[str], field: str
) -> Iterator[tuple[TextValue, str]]:
    if len(found) != len(values):
        said = _('%(n)s documents, and %(values)s values of "%(field)s"; each document has one')
        raise source.bad(line, said % {"n": len(found), "values": len(values), "field": field})
    return zip(found, values, strict=True)


def _passages(source: FileSource, table: Table, line: int, row: list[str], place: int) -> list[TextValue]:
    try:
        return passages.read_passages(row[place])
    except passages.NoPassageError as error:
        raise _no_passage(source, line, table.header[place], error) from None


def _no_passage(source: FileSource, line: int, header: str, error: passages.NoPassageError) -> Exception:
    said = _('"%(header)s" holds no text that can be read: %(value)s; write it as {"id", "title", "text"}')
    return source.bad(line, said % {"header": header, "value": error})


def read_query(source: FileSource, table: Table, line: int, row: list[str]) -> tuple[str, str]:
    """Return a row's query id and text; without an id column it is the text's."""
    cell, own = _cell(table, row, "query"), ""
    if cell[:1] in ("{", "[") and (found := _read_object(source, table, line, cell, "query")) is not None:
        own, cell = found.id, found.text or ""
    if "query_id" in table.places:
        own = _cell(table, row, "query_id").strip()
        return source.identifier(line, own, "query_id"), cell
    return source.identifier(line, own, "query_id") if own else _hash_text(cell), cell


def _document(source: FileSource, table: Table, line: int, row: list[str]) -> tuple[str, str, str]:
    """Return the id, the title and the text of a row's document."""
    own, title, text = "", _text(source, table, line, row, "title"), _cell(table, row, "text")
    if text[:1] in ("{", "[") and (found := _read_object(source, table, line, text, "text")) is not None:
        own, title, text = found.id, title or found.title, found.text or ""
    if "doc_id" in table.places:
        return source.identifier(line, _cell(table, row, "doc_id").strip(), "doc_id"), title, text
    return source.identifier(line, own, "doc_id") if own else _hash_text(title, text), title, text


def _read_object(source: FileSource, table: Table, line: int, cell: str, field: str) -> TextValue | None:
    """Return what a list or object is; None for a text that looks like one."""
    value = parse_cell(cell)
    # In a file of text an object is one only where it holds a text by its name.
    if not isinstance(cell, StructuredCell) and not isinstance(value, dict):
        return None
    try:
        return passages.read_query(cell) if field == "query" else passages.read_document(cell)
    except passages.NoPassageError as error:
        if not isinstance(cell, StructuredCell):
            return None
        raise _no_passage(source, line, table.header[table.places[field]], error) from None


def _hash_text(*parts: str) -> str:
    """Return the id of a text that has none in its file."""
    # 64 bits: among ten million texts two share an id with a chance of 1 in 370,000, and are then refused.
    return content_hash(*parts)[:16]


def _cell(table: Table, row: list[str], field: str) -> str:
    place = table.places.get(field)
    return "" if place is None else row[place]


def _text(source: FileSource, table: Table, line: int, row: list[str], field: str) -> str:
    """Return a text; the parts of a list on lines of their own. Raises BadInput for an object without a text."""
    cell = _cell(table, row, field)
    if isinstance(cell, StructuredCell):
        found = _read_object(source, table, line, cell, field)
        return (found.text or "") if found else ""
    return cell


def _answers(source: FileSource, table: Table, line: int, row: list[str]) -> list[str]:
    """Return the answers of a cell: a JSON list, or one a line, for a cell has no other mark that no answer holds."""
    cell = _cell(table, row, "answers")
    value = parse_cell(cell)
    if isinstance(value, dict):
        # SQuAD's {"text": [...]}, and TriviaQA's {"value", "aliases"}, which say an answer several times.
        held = [value[name] for name in ("text", "value", "aliases", "answer", "answers") if name in value]
        texts = list(dict.fromkeys(_flat_answers(held)))
        # SQuAD's questions without an answer have empty lists.
        value = texts if texts or (held and not any(held)) else [value]
    if isinstance(value, list) and (isinstance(cell, StructuredCell) or all(isinstance(one, str) for one in value)):
        texts = list(_flat_answers(value))
        if value and not texts:
            said = _('"%(header)s" holds no answer that can be read: %(value)s; write a list of texts')
            raise source.bad(line, said % {"header": table.header[table.places["answers"]], "value": cell[:60]})
        return texts
    return [one.strip() for one in cell.split("\n") if one.strip()]


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
            parsed = parse_cell(row[place])
            value = parsed if isinstance(row[place], StructuredCell) else row[place]
            is_whole = name in ("metadata", OTHER) and isinstance(parsed, dict) and parsed
            kept |= parsed if is_whole else {name: value}
    return json.dumps(kept, ensure_ascii=False)


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
