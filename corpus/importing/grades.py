"""Grades and rankings in files: qrels (BEIR, TREC), CSV of judgments, TREC runs. Pure."""

import math
import re
import struct
from collections.abc import Iterator
from heapq import heappush, heapreplace
from itertools import islice
from typing import NamedTuple

from django.utils.translation import gettext as _

from corpus.importing import tables
from corpus.importing.files import FileSource

_INTEGER = re.compile(r"[+-]?\d{1,9}\Z")
_COLUMNS = ("query_id", "doc_id", "grade")


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


def read_grades(source: FileSource, top: int) -> Iterator[GradeRow]:
    """Return the rows of qrels (3 columns after a header, or TREC's 4) or of a CSV: the first line tells which."""
    number, first = source.first()
    if not number:
        return iter(())
    text = source.decode(number, first)
    refuse_json(source, number, text)
    table = tables.read_table(source)
    # Three columns with tabs are BEIR's qrels, whatever their header says.
    if table and set(_COLUMNS) <= table.places.keys() and (table.delimiter != "\t" or len(table.header) != 3):
        return _read_table(source, table, top)
    if table and table.delimiter != "\t":
        tables.require_fields(source, table, _COLUMNS)
    width = len(text.split())
    if width not in (3, 4):
        raise source.bad(number, _("%(n)s columns; qrels have 3 (after a header) or 4") % {"n": width})
    if width == 3 and _INTEGER.match(text.split()[2]):
        raise source.bad(number, _("3 columns without a header; begin with the line query-id, corpus-id, score"))
    return _read_qrels(source, top, width)


def refuse_json(source: FileSource, number: int, text: str) -> None:
    """Raise BadInput where a file of columns begins as JSON does; the error says whose JSON, or of what form."""
    if text[:1] in ("{", "["):
        raise source.bad(
            number, source.foreign() or _("this is JSON, and here columns are read; see docs/importing.md")
        )


def _read_qrels(source: FileSource, top: int, width: int) -> Iterator[GradeRow]:
    for number, text in islice(source.texts(), int(width == 3), None):  # 3 columns: after a header
        columns = text.split()
        if len(columns) != width:
            yield GradeRow(number, "", "", 0, "", _columns_problem(len(columns), width), "malformed")
            continue
        yield _grade_row(number, columns[0], columns[-2], columns[-1], top)


def _read_table(source: FileSource, table: tables.Table, top: int) -> Iterator[GradeRow]:
    """Yield the rows of a table that has columns of query, document and grade, and perhaps one of who graded."""
    places = table.places
    for number, row in tables.read_ragged_rows(source, table):
        if len(row) != len(table.header):
            yield GradeRow(number, "", "", 0, "", _columns_problem(len(row), len(table.header)), "malformed")
            continue
        query, document, grade = (row[places[field]].strip() for field in _COLUMNS)
        assessor = row[places["assessor"]].strip() if "assessor" in places else ""
        yield _grade_row(number, query, document, grade, top, assessor)


def _columns_problem(found: int, expected: int) -> str:
    return _("%(n)s columns instead of %(expected)s") % {"n": found, "expected": expected}


def _grade_row(number: int, query: str, document: str, grade: str, top: int, assessor: str = "") -> GradeRow:
    if not _INTEGER.match(grade):
        problem, kind = _("the grade is not an integer: %(value)r") % {"value": grade[:40]}, "malformed"
    elif int(grade) > top:
        said = _("grade %(grade)s is above the highest grade %(top)s")
        problem, kind = said % {"grade": int(grade), "top": top}, "out-of-range"
    else:
        return GradeRow(number, query, document, int(grade), assessor)
    return GradeRow(number, query, document, 0, assessor, problem, kind)


def top_of_run(source: FileSource, depth: int) -> Iterator[tuple[int, str, str]]:
    """Yield (line, query, document) of the best `depth` of each query, in the order in which trec_eval ranks.

    Memory holds `depth` lines a query. Every line is checked, also those below the depth.
    """
    best: dict[str, list[tuple[float, str, int]]] = {}
    names: dict[str, set[str]] = {}
    for number, text in source.texts():
        if not best:
            refuse_json(source, number, text)
        columns = text.split()
        if len(columns) != 6:
            raise source.bad(number, _("%(n)s columns instead of the 6 of a run") % {"n": len(columns)})
        query, document = columns[0], columns[2]
        # trec_eval keeps scores in 32 bits: two that differ by less are equal there, and the document id decides.
        try:
            score = struct.unpack("f", struct.pack("f", float(columns[4])))[0]
        except (ValueError, OverflowError):
            score = math.nan
        if math.isnan(score):
            raise source.bad(number, _("the score is not a number: %(value)r") % {"value": columns[4][:40]})
        kept, among = best.setdefault(query, []), names.setdefault(query, set())
        if document in among:
            said = _('document "%(document)s" stands twice for query "%(query)s"')
            raise source.bad(number, said % {"document": document, "query": query})
        if len(kept) < depth:
            heappush(kept, (score, document, number))
            among.add(document)
        elif (score, document, number) > kept[0]:
            among.discard(heapreplace(kept, (score, document, number))[1])
            among.add(document)
    for query, kept in best.items():
        for _score, document, number in sorted(kept, reverse=True):
            yield number, query, document
