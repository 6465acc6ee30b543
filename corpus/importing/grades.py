"""Grades and rankings in files: qrels (BEIR, TREC), CSV of judgments, TREC runs. Pure."""

import csv
import math
import re
import struct
from collections.abc import Iterator
from heapq import heappush, heapreplace
from typing import NamedTuple

from corpus.importing.files import FileSource

_INTEGER = re.compile(r"[+-]?\d{1,9}\Z")


class GradeRow(NamedTuple):
    """One grade as it stands in the file, or what could be read of it and the `problem` that makes it none."""

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
    if "," in text and len(text.split()) < 3:
        return _read_csv(source, top)
    width = len(text.split())
    if width not in (3, 4):
        raise source.bad(number, f"{width} columns; qrels have 3 (after a header) or 4")
    if width == 3 and _INTEGER.match(text.split()[2]):
        raise source.bad(number, "3 columns without a header; begin with the line query-id, corpus-id, score")
    return _read_qrels(source, top, width)


def refuse_json(source: FileSource, number: int, text: str) -> None:
    """Raise BadInput where a file of columns begins as JSON does; the error says whose JSON, or of what form."""
    if text[:1] in ("{", "["):
        raise source.bad(number, source.foreign() or "this is JSON, and here columns are read; see docs/importing.md")


def _read_qrels(source: FileSource, top: int, width: int) -> Iterator[GradeRow]:
    header = width == 3
    for number, text in source.texts():
        if header:
            header = False
            continue
        columns = text.split()
        if len(columns) != width:
            yield GradeRow(number, "", "", 0, "", f"{len(columns)} columns instead of {width}", "malformed")
            continue
        query, document, grade = columns[0], columns[-2], columns[-1]
        yield _grade_row(source, number, query, document, grade, top)


def _read_csv(source: FileSource, top: int) -> Iterator[GradeRow]:
    """Yield the rows of a CSV with the header query_id,doc_id,grade and perhaps assessor; one record a line."""
    header: list[str] | None = None
    for number, text in source.texts():
        columns = next(csv.reader([text], strict=False))
        if header is None:
            header = [column.strip() for column in columns]
            if header not in (["query_id", "doc_id", "grade"], ["query_id", "doc_id", "grade", "assessor"]):
                raise source.bad(
                    number, "the header of a CSV is query_id,doc_id,grade or query_id,doc_id,grade,assessor"
                )
            continue
        if len(columns) != len(header):
            yield GradeRow(number, "", "", 0, "", f"{len(columns)} columns instead of {len(header)}", "malformed")
            continue
        fields = [column.strip() for column in columns]
        yield _grade_row(source, number, fields[0], fields[1], fields[2], top, fields[3] if len(fields) == 4 else "")


def _grade_row(
    source: FileSource, number: int, query: str, document: str, grade: str, top: int, assessor: str = ""
) -> GradeRow:
    if not _INTEGER.match(grade):
        return GradeRow(
            number, query, document, 0, assessor, f"the grade is not an integer: {grade[:40]!r}", "malformed"
        )
    value = int(grade)
    if value > top:
        problem = f"grade {value} is above the highest grade {top}"
        return GradeRow(number, query, document, 0, assessor, problem, "out-of-range")
    return GradeRow(number, query, document, value, assessor)


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
            raise source.bad(number, f"{len(columns)} columns instead of the 6 of a run")
        query, document = columns[0], columns[2]
        # trec_eval keeps scores in 32 bits: two that differ by less are equal there, and the document id decides.
        try:
            score = struct.unpack("f", struct.pack("f", float(columns[4])))[0]
        except (ValueError, OverflowError):
            score = math.nan
        if math.isnan(score):
            raise source.bad(number, f"the score is not a number: {columns[4][:40]!r}")
        kept, among = best.setdefault(query, []), names.setdefault(query, set())
        if document in among:
            raise source.bad(number, f'document "{document}" stands twice for query "{query}"')
        if len(kept) < depth:
            heappush(kept, (score, document, number))
            among.add(document)
        elif (score, document, number) > kept[0]:
            among.discard(heapreplace(kept, (score, document, number))[1])
            among.add(document)
    for query, kept in best.items():
        for _score, document, number in sorted(kept, reverse=True):
            yield number, query, document
