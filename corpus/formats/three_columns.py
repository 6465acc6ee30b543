"""Files of three columns without a header, as in MS MARCO: qrels, a run, triples. Pure."""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from corpus.formats.files import FileSource
from corpus.formats.grade_values import is_grade

LOOKED_AT = 5_000  # Lines that are inspected.
QRELS, RUN, TRIPLES, TEXT_TRIPLES = "qrels", "runs", "triples", "text-triples"
FIELDS = {
    QRELS: ("query_id", "doc_id", "grade"),
    RUN: ("query_id", "doc_id", "metadata"),
    TRIPLES: ("query_id", "positive_id", "negative_id"),
    TEXT_TRIPLES: ("query", "positive", "negative"),
}
_DECIMAL = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?\Z")
_RUN_NAME = re.compile(r"run|top\d|rank")
_MOST = 100  # The highest possible grade.
_WORDS_OF_TEXT = 4  # A passage has at least so many words, and a header hardly.


def is_decimal(text: str) -> bool:
    """Return whether a third column is a score, such as 3.0 or 1e-3, and not a rank, such as 3."""
    return bool(_DECIMAL.match(text))


def kind_of(source: FileSource, first: Sequence[str]) -> str:
    """Return the kind of three columns whose first line is `first`; "" for a header or an unknown kind.

    Integers in the third column are ranks if they count up from the first line of each query, ids
    if one is above every scale, and otherwise grades. With one line per query, the file's name
    decides. Decimals are scores if one is not a whole number, or if they decrease from line to line
    of each query; otherwise they are grades, as programs write them in columns with missing values.
    """
    if len(first) != 3:
        return ""
    query, second, third = (cell.strip() for cell in first)
    if not third:
        # A missing grade, which the reader will report: later lines show the kind.
        lines = (text.split() for _number, text in islice(source.texts(), LOOKED_AT))
        third = next((cells[2] for cells in lines if len(cells) == 3), "")
    if all(len(cell.split()) >= _WORDS_OF_TEXT for cell in (second, third)):
        return TEXT_TRIPLES
    if " " in query or " " in second:
        return ""
    if third.isdigit():
        last: dict[str, int] = {}
        is_rising, has_several, highest = True, False, 0
        for columns in _first_columns(source):
            if len(columns) != 3 or not columns[2].isdigit():
                break  # The reader will report the line.
            query, value = columns[0], int(columns[2])
            highest = max(highest, value)
            if query in last:
                has_several, is_rising = True, is_rising and value == last[query] + 1
            else:
                is_rising = is_rising and value in (0, 1)
            last[query] = value
        name = source.name.rpartition("/")[2].lower()
        if has_several and is_rising and "qrel" not in name:
            return RUN
        if highest > _MOST or "triple" in name:
            return TRIPLES
        return RUN if is_rising and "qrel" not in name and _RUN_NAME.search(name) else QRELS
    if is_decimal(third):
        return _kind_of_decimals(source)
    # "relevant" may be a header; next to an id it is a grade, and most ids contain a digit.
    return QRELS if is_grade(third) and re.search(r"\d", third + second) else ""


def _kind_of_decimals(source: FileSource) -> str:
    last: dict[str, float] = {}
    is_whole, is_falling, has_several, lowest = True, True, False, math.inf
    for columns in _first_columns(source):
        if len(columns) != 3 or not is_decimal(columns[2]):
            break  # The reader will report the line.
        query, value = columns[0], float(columns[2])
        is_whole, lowest = is_whole and value.is_integer(), min(lowest, value)
        if query in last:
            has_several, is_falling = True, is_falling and value < last[query]
        last[query] = value
    name = source.name.rpartition("/")[2].lower()
    if "qrel" in name:
        return QRELS
    # A grade of 0 is common, and a score of 0.0 at the end of each query is not.
    is_run = not is_whole or (has_several and is_falling and lowest > 0) or _RUN_NAME.search(name)
    return RUN if is_run else QRELS


def _first_columns(source: FileSource) -> Iterator[list[str]]:
    """Return the columns of the first lines, without the comments of trec_eval."""
    lines = (text for _number, text in source.texts() if not text.startswith("#"))
    return (text.split() for text in islice(lines, LOOKED_AT))
