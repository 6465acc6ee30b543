"""Grades and rankings in files: qrels (BEIR, TREC, MS MARCO), tables and JSON of judgments, runs. Pure."""

import math
import re
import struct
from collections.abc import Iterator
from heapq import heappush, heapreplace
from itertools import islice
from typing import NamedTuple

from django.utils.translation import gettext as _

from corpus.formats import json_rows
from corpus.formats.files import TEXT, FileSource
from corpus.formats.grade_values import GradeReader, is_grade
from corpus.formats.json_objects import read_objects
from corpus.importing import table_records, tables

_COLUMNS = ("query_id", "doc_id", "grade")
_HEADER = re.compile(r"score|grade|label|rel|judg|rating", re.IGNORECASE)


class GradeRow(NamedTuple):
    """A grade of a file, or as much as could be read of it with the `problem` that makes it none."""

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


def read_grades(source: FileSource, top: int, relevant_from: int = 1) -> Iterator[GradeRow]:
    """Return the rows of qrels (3 columns, or TREC's 4), of a table or of judgments in JSON: the content tells which.

    `relevant_from`: the lowest relevant grade, by which grades in words may be ambiguous.
    """
    reader = GradeReader(top, relevant_from)
    number, first = source.first() if source.form == TEXT else (1, b"")
    if not number:
        return iter(())
    text = source.decode(number, first)
    table = tables.read_table(source)
    if table is None and text[:1] in "{[" and text:
        return _read_judgments(source, reader)
    # Three columns with tabs are BEIR's qrels, whatever their header says, but for triples.
    is_beir = table and table.delimiter == "\t" and len(table.header) == 3 and table.kind in ("", "qrels", "pairs")
    if table and not is_beir and "grade" in table.places:
        for texts, name in (("query", "query_id"), ("text", "doc_id")):
            if texts not in table.places:
                tables.require_fields(source, table, (name,))
        return _read_table(source, table, reader)
    if table and table.delimiter != "\t":
        tables.require_fields(source, table, _COLUMNS)
    width = len(text.split())
    if width not in (3, 4):
        raise source.bad(number, _("%(n)s columns; qrels have 3 or 4") % {"n": width})
    third = text.split()[2]
    has_header = width == 3 and not is_grade(third) and (bool(_HEADER.search(third)) or not re.search(r"\d", third))
    return _read_qrels(source, reader, width, has_header=has_header)


def refuse_json(source: FileSource, number: int, text: str) -> None:
    """Raise BadInput where a file of columns begins as JSON does; the error says whose JSON, or of what form."""
    if text[:1] in ("{", "["):
        raise source.bad(
            number, source.foreign() or _("this is JSON, and here columns are read; see docs/importing.md")
        )


def _read_qrels(source: FileSource, reader: GradeReader, width: int, *, has_header: bool) -> Iterator[GradeRow]:
    for number, text in islice(source.texts(), int(has_header), None):
        columns = text.split()
        if len(columns) != width:
            yield GradeRow(number, "", "", 0, "", _columns_problem(len(columns), width), "malformed")
            continue
        yield _grade_row(reader, number, columns[0], columns[-2], columns[-1])


def _read_table(source: FileSource, table: tables.Table, reader: GradeReader) -> Iterator[GradeRow]:
    """Yield the rows of a table that has columns of query, document and grade, and perhaps one of who graded.

    Where the table has the texts themselves, a row without a grade is a pair that waits for one.
    """
    places = table.places
    has_ids = {"query_id", "doc_id"} <= places.keys()
    for number, row in tables.read_ragged_rows(source, table):
        if len(row) != len(table.header):
            yield GradeRow(number, "", "", 0, "", _columns_problem(len(row), len(table.header)), "malformed")
            continue
        if has_ids:
            query, document = (row[places[field]].strip() for field in ("query_id", "doc_id"))
        else:
            query, document = table_records.read_ids(source, table, number, row)
        grade = row[places["grade"]].strip()
        assessor = row[places["assessor"]].strip() if "assessor" in places else ""
        if grade or not table.repeats_texts:
            yield _grade_row(reader, number, query, document, grade, assessor)


def _read_judgments(source: FileSource, reader: GradeReader) -> Iterator[GradeRow]:
    """Yield the rows of our own judgments.jsonl. Raises BadInput for other JSON, as far as its first object tells."""
    for place, (number, row) in enumerate(read_objects(source)):
        if not row.keys() >= json_rows.JUDGMENT:
            known = (source.foreign() if not place else "") or _("these are not grades; see docs/importing.md")
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


def top_of_run(source: FileSource, depth: int) -> Iterator[tuple[int, str, str]]:
    """Yield (line, query, document) of the best `depth` of each query, in the order in which trec_eval ranks.

    A run has TREC's six columns, or MS MARCO's three: query, document, rank. Memory holds `depth` lines a query. Every
    line is checked, also those below the depth.
    """
    best: dict[str, list[tuple[float, str, int]]] = {}
    names: dict[str, set[str]] = {}
    width = 0
    for number, text in source.texts():
        if not best:
            refuse_json(source, number, text)
        columns = text.split()
        width = width or run_width(columns)
        if len(columns) != width:
            raise source.bad(number, _run_columns_problem(len(columns), width))
        query, document = columns[0], columns[1 if width == 3 else 2]
        score = _read_score(source, number, columns)
        kept, among = best.setdefault(query, []), names.setdefault(query, set())
        # Noticed among the kept alone: to remember every document of a run would take as much memory as the run.
        if document in among:
            said = _('document "%(document)s" stands twice for query "%(query)s"')
            raise source.bad(number, said % {"document": document, "query": query})
        if len(kept) < depth:
            heappush(kept, (score, document, number))
            among.add(document)
        # Of equal scores the greater document id ranks first, as in trec_eval.
        elif (score, document, number) > kept[0]:
            among.discard(heapreplace(kept, (score, document, number))[1])
            among.add(document)
    for query, kept in best.items():
        for _score, document, number in sorted(kept, reverse=True):
            yield number, query, document


def run_width(first: list[str]) -> int:
    """Return how many columns a run has by its first line: MS MARCO's three (query, document, rank), or TREC's six."""
    return 3 if len(first) == 3 and first[2].isdecimal() else 6


def _run_columns_problem(found: int, width: int) -> str:
    if width == 3:
        return _columns_problem(found, 3)
    return _("%(n)s columns instead of the 6 of a run") % {"n": found}


def _read_score(source: FileSource, number: int, columns: list[str]) -> float:
    """Return the score of a line; in a file of ranks the first is the highest."""
    if len(columns) == 3:
        if not columns[2].isdecimal():
            raise source.bad(number, _("the rank is not a number: %(value)r") % {"value": columns[2][:40]})
        return -float(columns[2])
    # trec_eval keeps scores in 32 bits: two that differ by less are equal there, and the document id decides.
    try:
        score = struct.unpack("f", struct.pack("f", float(columns[4])))[0]
    except (ValueError, OverflowError):
        score = math.nan
    if math.isnan(score):
        raise source.bad(number, _("the score is not a number: %(value)r") % {"value": columns[4][:40]})
    return float(score)
