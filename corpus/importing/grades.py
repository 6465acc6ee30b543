"""Grades in files: qrels (BEIR, TREC, MS MARCO), tables and JSON of judgments. Pure."""

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
    """A grade of a file, or as much as could be read, with the `problem`."""

    line: int
    query: str
    document: str
    # Below 0: in the pool and not judged, as TREC writes it. It is no grade and never becomes one.
    grade: int
    assessor: str = ""
    problem: str = ""
    kind: str = ""  # Of the problem: malformed or out-of-range.
    # Of our own judgments.jsonl: the assessor's kind, the step, and when it was said.
    assessor_kind: str = ""
    step: str = ""
    said_at: str = ""


@confinable
def read_grades(source: FileSource, top: int, relevant_from: int = 1, *, by_ids: bool = False) -> Iterator[GradeRow]:
    """Return the rows of qrels (3 columns, or TREC's 4), of a table or of judgments in JSON: the content tells which.

    Columns with names go by their names, and by their places only where no name is known.
    `relevant_from`: the lowest relevant grade, by which grades in words may be ambiguous. `by_ids`:
    there are no texts, so that a column called "query" holds ids.
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
    # Columns of text have no name that is known: their places tell what they are.
    is_narrow = table.delimiter == "\t" and len(table.header) in (3, 4)
    is_nameless = is_narrow and not table.places and not columns.name_fields(table.header)
    if table.form == TEXT and (not table.has_header or is_nameless):
        return _read_qrels(source, reader)
    # Read for its grades, a score is one where there is no other, and a text is an id where there are only ids.
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
    """Return whether a line of qrels or of a run is a comment, as trec_eval has them; `#12 0 d1 1` has an id."""
    if text[:1] != "#":
        return False
    cells = text.split()
    is_row = (len(cells) in (3, 4) and is_grade(cells[-1])) or (len(cells) == 6 and cells[3].isdecimal())
    return cells[0] == "#" or not is_row


def split_line(text: str, width: int) -> list[str]:
    """Return the columns of a line without a header: between blanks, or between tabs where one of them is empty."""
    cells = text.split()
    if len(cells) < width and text.count("\t") == width - 1:
        return [cell.strip() for cell in text.split("\t")]
    return cells


def _read_qrels(source: FileSource, reader: GradeReader) -> Iterator[GradeRow]:
    """Yield the rows of qrels whose columns have no names: query, document and grade, or with TREC's iteration."""
    # Every call counts here: it is made for each of millions of lines.
    lines = ((number, text) for number, text in source.texts() if text[:1] != "#" or not is_comment(text))
    number, text = next(lines, (1, ""))
    width = len(text.split("\t")) if text.count("\t") in (2, 3) else len(text.split())
    if width not in (3, 4):
        raise source.bad(number, _("%(n)s columns; qrels have 3 or 4") % {"n": width})
    last = split_line(text, width)[-1]
    # Of TREC's four columns a header is hardly known by having no digit: a grade may be a wrong word.
    is_named = bool(_HEADER.search(last)) or (width == 3 and not re.search(r"\d", last))
    is_header = bool(last) and not is_grade(last) and is_named
    if not is_header:
        yield _read_place(reader, number, text, width)
    for number, text in lines:
        cells = text.split()
        if len(cells) != width:
            yield _read_place(reader, number, text, width)
            continue
        value, problem, kind = reader.read(number, cells[-1])
        yield GradeRow(number, cells[0], cells[-2], value, "", problem, kind)


def _read_place(reader: GradeReader, number: int, text: str, width: int) -> GradeRow:
    cells = split_line(text, width)
    if len(cells) != width:
        return GradeRow(number, "", "", 0, "", _columns_problem(len(cells), width), "malformed")
    return _grade_row(reader, number, cells[0], cells[-2], cells[-1])


def _read_table(source: FileSource, table: Table, reader: GradeReader) -> Iterator[GradeRow]:
    """Yield the rows of a table with grades; one of texts may have rows without, which wait for theirs."""
    places, width, names_assessors = table.places, len(table.header), table.names_assessors
    has_ids = {"query_id", "doc_id", "grade"} <= places.keys() and not table.has_lists
    by_ids = [places[field] for field in ("query_id", "doc_id", "grade")] if has_ids else []
    waits = table.repeats_texts or table.has_lists
    for number, row in tables.read_ragged_rows(source, table):
        if len(row) != width:
            if not is_comment(row[0]):
                yield GradeRow(number, "", "", 0, "", _columns_problem(len(row), width), "malformed")
            continue
        if has_ids:
            query, document, grade = [row[place].strip() for place in by_ids]
            is_assumed = "assumed" in places and row[places["assumed"]].lower() in ("true", "1")
            found = [(document, "" if is_assumed else grade)]
        else:
            query = table_records.read_query(source, table, number, row)[0]
            found = [(one.id, one.grade) for one in table_records.read_candidates(source, table, number, row)]
        if names_assessors:
            for place in table.columns["grade"]:
                if grade := row[place].strip():
                    yield _grade_row(reader, number, query, found[0][0], grade, table.header[place])
            continue
        assessor = row[places["assessor"]].strip() if "assessor" in places else ""
        for document, grade in found:
            if grade == table_records.RELEVANT:
                yield GradeRow(number, query, document, max(1, reader.relevant_from), assessor)
            elif grade or not waits:
                yield _grade_row(reader, number, query, document, grade, assessor)


def _read_judgments(source: FileSource, reader: GradeReader) -> Iterator[GradeRow]:
    """Yield the rows of our own judgments.jsonl. Raises BadInput for other JSON, as far as its first object tells."""
    for place, (number, row) in enumerate(read_objects(source)):
        if not row.keys() >= json_rows.JUDGMENT:
            known = (source.foreign() if not place else "") or _("these are not grades; see docs/import.md")
            raise source.bad(number, known)
        query = source.identifier(number, row["query_id"], "query_id")
        document = source.identifier(number, row["doc_id"], "doc_id")
        # The first answer of somebody who then saw the debate is not what they said in the end.
        if row["step"] == "first" or row["grade"] is None:
            continue
        found = _grade_row(reader, number, query, document, str(row["grade"]), str(row["assessor"]))
        step, said_at = str(row["step"]), str(row.get("time") or "")
        yield found._replace(assessor_kind=str(row["kind"]), step=step, said_at=said_at)


def _columns_problem(found: int, expected: int) -> str:
    return _("%(n)s columns instead of %(expected)s") % {"n": found, "expected": expected}


def _grade_row(reader: GradeReader, number: int, query: str, document: str, grade: str, assessor: str = "") -> GradeRow:
    value, problem, kind = reader.read(number, grade)
    return GradeRow(number, query, document, value, assessor, problem, kind)
