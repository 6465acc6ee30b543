"""Readers of runs: TREC's six columns, MS MARCO's three, and tables with column names. Pure."""

import math
import re
import struct
from collections.abc import Iterator
from heapq import heappush, heapreplace

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats.files import TEXT, FileSource
from corpus.formats.three_columns import is_decimal
from corpus.importing import tables
from corpus.importing.confinement import confinable
from corpus.importing.grades import is_comment
from corpus.importing.tables import Table

# Line number, query, document, score, name of the system, and the problem of a bad line.
RunLine = tuple[int, str, str, str, str, str]


def read_run_lines(source: FileSource) -> Iterator[RunLine]:
    """Yield the lines of a run; in a file of ranks the score is the negative rank.

    Columns with names may come in any order; without names there are TREC's six (query, Q0,
    document, rank, score, name of the system) or three: query, document, and a rank or a score.
    """
    table = _named_table(source)
    yield from _read_table(source, table) if table else _read_places(source)


def _named_table(source: FileSource) -> Table | None:
    """Return the table of a run with column names; None without names. Raises BadInput if a name is missing."""
    number, first = source.first() if source.form == TEXT else (1, b"")
    if not number:
        return None
    try:
        table = tables.read_table(source)
    except BadInput:
        if source.form == TEXT:
            raise
        return None
    places = table.places.keys() if table else set()
    # A run has no texts: a column called "query" contains ids.
    sides = ({"query_id", "query"}, {"doc_id", "text"}, {"rank", "score"})
    if table and table.has_header and all(places & side for side in sides):
        return table
    if first[:1] in (b"{", b"["):
        source.decode(number, first)
        columns_only = _("this is JSON, and here columns are read; see docs/import.md")
        raise source.bad(number, source.foreign() or columns_only)
    if table and table.has_header and sum(bool(places & side) for side in sides) > 1:
        tables.require_fields(source, table, ("query_id", "doc_id", "score"))
    return None


def _read_table(source: FileSource, table: Table) -> Iterator[RunLine]:
    places = table.places
    query, document = places.get("query_id", places.get("query", 0)), places.get("doc_id", places.get("text", 0))
    value, is_rank = places.get("score", places.get("rank", 0)), "score" not in places
    for number, row in tables.read_ragged_rows(source, table):
        if len(row) != len(table.header):
            if not is_comment(row[0]):
                message = _("%(n)s columns instead of %(expected)s") % {"n": len(row), "expected": len(table.header)}
                yield number, "", "", "", "", message
            continue
        ids = row[query].strip(), row[document].strip()
        problem = "" if all(ids) else _("an id is empty")
        if any(re.search(r"\s", name) for name in ids):
            problem = _("an id contains white space")
        yield number, *ids, _score_of(row[value].strip(), is_rank=is_rank), "", problem


def _score_of(text: str, *, is_rank: bool) -> str:
    """Return the text of a score, or of a negative rank; an invalid rank is reported later as an invalid score."""
    return f"-{text}" if is_rank and re.fullmatch(r"\d+(?:\.0+)?", text) else text


def _read_places(source: FileSource) -> Iterator[RunLine]:
    width, is_rank = 0, False
    for number, text in source.texts():
        if text[:1] == "#" and is_comment(text):
            continue
        cells = text.split()
        if not width:
            width = 3 if len(cells) == 3 and (cells[2].isdecimal() or is_decimal(cells[2])) else 6
            is_rank = width == 3 and cells[2].isdecimal()
        if len(cells) != width:
            problem = _("%(n)s columns instead of the 6 of a run")
            if width == 3:
                problem = _("%(n)s columns instead of 3, as in the first line")
            elif len(cells) > 6:
                problem = _("%(n)s columns instead of the 6 of a run (an id or a tag with white space?)")
            yield number, "", "", "", "", problem % {"n": len(cells)}
        elif width == 3:
            query, document, value = cells
            yield number, query, document, _score_of(value, is_rank=is_rank), "", ""
        else:
            query, _zero, document, _rank, score, tag = cells
            yield number, query, document, score, tag, ""


@confinable
def top_of_run(source: FileSource, depth: int) -> Iterator[tuple[int, str, str]]:
    """Yield (line, query, document) of the best `depth` documents of each query, as in trec_eval; check all lines."""
    best: dict[str, list[tuple[float, str, int]]] = {}
    names: dict[str, set[str]] = {}
    for number, query, document, value, _tag, problem in read_run_lines(source):
        if problem:
            raise source.bad(number, problem)
        score = _read_score(source, number, value)
        heap, heap_names = best.setdefault(query, []), names.setdefault(query, set())
        # Repeated documents are noticed only among the best: remembering all would take as much memory as the run.
        if document in heap_names:
            message = _('document "%(document)s" is listed twice for query "%(query)s"')
            raise source.bad(number, message % {"document": document, "query": query})
        if len(heap) < depth:
            heappush(heap, (score, document, number))
            heap_names.add(document)
        # Among equal scores the greater document id ranks first, as in trec_eval.
        elif (score, document, number) > heap[0]:
            heap_names.discard(heapreplace(heap, (score, document, number))[1])
            heap_names.add(document)
    for query, heap in best.items():
        for _score, document, number in sorted(heap, reverse=True):
            yield number, query, document


def _read_score(source: FileSource, number: int, value: str) -> float:
    # trec_eval stores scores in 32 bits, so that nearly equal ones are ties, which the document id breaks.
    try:
        score = struct.unpack("f", struct.pack("f", float(value)))[0]
    except (ValueError, OverflowError):
        score = math.nan
    if math.isnan(score):
        raise source.bad(number, _("the score is not a number: %(value)r") % {"value": value[:40]})
    return float(score)
