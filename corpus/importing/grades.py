"""Readers of grades: qrels (BEIR, TREC, MS MARCO), tables, and judgments in JSON. Pure."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from django.utils.translation import gettext as _

from corpus.formats import json_rows
from corpus.formats.files import TEXT, FileSource
from corpus.formats.grade_values import GradeReader, is_grade
from corpus.formats.json_objects import read_objects
from corpus.importing import columns, table_records, tables
from corpus.importing.confinement import confinable
from corpus.importing.tables import Table

_HEADER = re.compile(r"score|grade|label|rel|judg|rating", re.IGNORECASE)


class GradeRow(NamedTuple):
    """A grade in a file; for a bad row as much as could be read, with the `problem`."""

    line: int
    query: str
    document: str
    # Below 0 for a pair in the pool that was not judged, as in TREC's qrels; this never becomes a grade.
    grade: int
    assessor: str = ""
    problem: str = ""
    kind: str = ""  # The kind of problem: malformed or out-of-range.
    # In our own judgments.jsonl: the assessor's kind, the step, and the time.
    assessor_kind: str = ""
    step: str = ""
    said_at: str = ""


@confinable
def read_grades(source: FileSource, top: int, relevant_from: int = 1, *, by_ids: bool = False) -> Iterator[GradeRow]:
    """Return the rows of qrels (3 columns, or TREC's 4), of a table or of judgments in JSON, by the content.

    Columns are identified by their names, and by their positions only if no name is known.
    `relevant_from` is the lowest relevant grade, for grades in words. `by_ids`: the file has no
    texts, so that a column called "query" contains ids.
    """
    reader = GradeReader(top, relevant_from)
    number, first = source.first() if source.form == TEXT else (1, b"")
    if not number:
        return iter(())
    text = source.decode(number, first)
    table = tables.read_table(source)
    if table is None and text[:1] in "{[" and text:
        return _read_judgments(source, reader)
    if table is None:
        return _read_qrels(source, reader)
    # Without any known name, columns are identified by their positions.
    is_narrow = table.delimiter == "\t" and len(table.header) in (3, 4)
    is_nameless = is_narrow and not table.places and not columns.name_fields(table.header)
    if table.form == TEXT and (not table.has_header or is_nameless):
        return _read_qrels(source, reader)
    # Without a column of grades, scores are grades; without texts, a column of texts contains ids.
    fields = dict(table.fields)
    if "grade" not in table.places:
        fields = {name: "grade" if field == "score" else field for name, field in fields.items()}
    for text_field, id_field in (("query", "query_id"), ("text", "doc_id")) if by_ids and not table.has_lists else ():
        if id_field not in table.places:
            fields = {name: id_field if field == text_field else field for name, field in fields.items()}
    table = replace(table, fields=fields)
    for texts, name in (("query", "query_id"), ("text", "doc_id")):
        if texts not in table.places and not (name == "doc_id" and table.has_lists):
            tables.require_fields(source, table, (name,))
    if not table.places.keys() & {"grade", "positive", "negative", "positive_id", "negative_id"}:
        tables.require_fields(source, table, ("grade",))
    return _read_table(source, table, reader)


def is_comment(text: str) -> bool:
    """Return whether a line of qrels or of a run is a comment, as in trec_eval; `#12 0 d1 1` is a row."""
    if text[:1] != "#":
        return False
    cells = text.split()
    is_row = (len(cells) in (3, 4) and is_grade(cells[-1])) or (len(cells) == 6 and cells[3].isdecimal())
    return cells[0] == "#" or not is_row


def split_line(text: str, width: int) -> list[str]:
    """Return the columns of a line: separated by blanks, or by tabs if one of them is empty."""
    cells = text.split()
    if len(cells) < width and text.count("\t") == width - 1:
        return [cell.strip() for cell in text.split("\t")]
    return cells


def _read_qrels(source: FileSource, reader: GradeReader) -> Iterator[GradeRow]:
    """Yield the rows of qrels without column names: query, document and grade, or TREC's four columns."""
    # The loop avoids function calls, since there may be millions of lines.
    lines = ((number, text) for number, text in source.texts() if text[:1] != "#" or not is_comment(text))
    number, text = next(lines, (1, ""))
    width = len(text.split("\t")) if text.count("\t") in (2, 3) else len(text.split())
    if width not in (3, 4):
        raise source.bad(number, _("%(n)s columns; qrels have 3 or 4") % {"n": width})
    last = split_line(text, width)[-1]
    # With TREC's four columns, a last column without a digit may also be an invalid grade.
    is_named = bool(_HEADER.search(last)) or (width == 3 and not re.search(r"\d", last))
    is_header = bool(last) and not is_grade(last) and is_named
    if not is_header:
        yield _read_line(reader, number, text, width)
    for number, text in lines:
        cells = text.split()
        if len(cells) != width:
            yield _read_line(reader, number, text, width)
            continue
        value, problem, kind = reader.read(number, cells[-1])
        yield GradeRow(number, cells[0], cells[-2], value, "", problem, kind)


def _read_line(reader: GradeReader, number: int, text: str, width: int) -> GradeRow:
    cells = split_line(text, width)
    if len(cells) != width:
        return GradeRow(number, "", "", 0, "", _columns_problem(len(cells), width), "malformed")
    return _grade_row(reader, number, cells[0], cells[-2], cells[-1])


def _read_table(source: FileSource, table: Table, reader: GradeReader) -> Iterator[GradeRow]:
    """Yield the rows of a table with grades; rows with texts may have none yet."""
    places, width, names_assessors = table.places, len(table.header), table.names_assessors
    has_ids = {"query_id", "doc_id", "grade"} <= places.keys() and not table.has_lists
    by_ids = [places[field] for field in ("query_id", "doc_id", "grade")] if has_ids else []
    may_lack_grades = table.repeats_texts or table.has_lists
    for number, row in tables.read_ragged_rows(source, table):
        if len(row) != width:
            if not is_comment(row[0]):
                yield GradeRow(number, "", "", 0, "", _columns_problem(len(row), width), "malformed")
            continue
        if has_ids:
            query, document, grade = [row[position].strip() for position in by_ids]
            is_assumed = "assumed" in places and row[places["assumed"]].lower() in ("true", "1")
            graded_documents = [(document, "" if is_assumed else grade)]
        else:
            query = table_records.read_query(source, table, number, row)[0]
            graded_documents = [
                (candidate.id, candidate.grade)
                for candidate in table_records.read_candidates(source, table, number, row)
            ]
        if names_assessors:
            for position in table.columns["grade"]:
                if grade := row[position].strip():
                    yield _grade_row(reader, number, query, graded_documents[0][0], grade, table.header[position])
            continue
        assessor = row[places["assessor"]].strip() if "assessor" in places else ""
        for document, grade in graded_documents:
            if grade == table_records.RELEVANT:
                yield GradeRow(number, query, document, max(1, reader.relevant_from), assessor)
            elif grade or not may_lack_grades:
                grade_row = _grade_row(reader, number, query, document, grade, assessor)
                if grade_row.problem and table.has_lists:
                    # The line of a list does not show which of its documents this is.
                    grade_row = grade_row._replace(problem=f'"{query}", {document}: {grade_row.problem}')
                yield grade_row


def _read_judgments(source: FileSource, reader: GradeReader) -> Iterator[GradeRow]:
    """Yield the rows of our own judgments.jsonl. Raises BadInput for other JSON."""
    for index, (number, row) in enumerate(read_objects(source)):
        if not row.keys() >= json_rows.JUDGMENT:
            problem = (source.foreign() if not index else "") or _("these are not grades; see docs/import.md")
            raise source.bad(number, problem)
        query = source.identifier(number, row["query_id"], "query_id")
        document = source.identifier(number, row["doc_id"], "doc_id")
        # A first judgment, before the debate was revealed, is followed by a final one.
        if row["step"] == "first" or row["grade"] is None:
            continue
        grade_row = _grade_row(reader, number, query, document, str(row["grade"]), str(row["assessor"]))
        step, said_at = str(row["step"]), str(row.get("time") or "")
        yield grade_row._replace(assessor_kind=str(row["kind"]), step=step, said_at=said_at)


def _columns_problem(count: int, expected: int) -> str:
    return _("%(n)s columns instead of %(expected)s") % {"n": count, "expected": expected}


def _grade_row(reader: GradeReader, number: int, query: str, document: str, grade: str, assessor: str = "") -> GradeRow:
    value, problem, kind = reader.read(number, grade)
    return GradeRow(number, query, document, value, assessor, problem, kind)
