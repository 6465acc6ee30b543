"""Three columns without a header, as MS MARCO writes them: qrels, a run, triples of ids or of texts. Pure."""

import re
from collections.abc import Sequence
from itertools import islice

from corpus.formats.files import FileSource
from corpus.formats.grade_values import is_grade

LOOKED_AT = 5_000  # Lines.
QRELS, RUN, TRIPLES, TEXT_TRIPLES = "qrels", "runs", "triples", "text-triples"
FIELDS = {
    QRELS: ("query_id", "doc_id", "grade"),
    RUN: ("query_id", "doc_id", "metadata"),
    TRIPLES: ("query_id", "positive_id", "negative_id"),
    TEXT_TRIPLES: ("query", "positive", "negative"),
}
_MOST = 100  # The highest grade that a scale can have.
_WORDS_OF_TEXT = 4  # As many words a passage has at least, and a header hardly.


def kind_of(source: FileSource, first: Sequence[str]) -> str:
    """Return what three columns are, whose first line is `first`; "" where that is a header or nothing known.

    Whole numbers as the third column are ranks where they count up from the first line of each query, ids where one
    is above every scale, and grades else. Where one line a query leaves it open, the file's name decides.
    """
    if len(first) != 3:
        return ""
    query, second, third = (cell.strip() for cell in first)
    if all(len(cell.split()) >= _WORDS_OF_TEXT for cell in (second, third)):
        return TEXT_TRIPLES
    if " " in query or " " in second:
        return ""
    if third.isdigit():
        return _kind_of_integers(source)
    # "relevant" may be a header; beside an id it is a grade, and ids are hardly without a digit.
    return QRELS if is_grade(third) and re.search(r"\d", third + second) else ""


def _kind_of_integers(source: FileSource) -> str:
    last: dict[str, int] = {}
    is_rising, several, highest = True, False, 0
    for _number, text in islice(source.texts(), LOOKED_AT):
        columns = text.split()
        if len(columns) != 3 or not columns[2].isdigit():
            break  # of which the reader will tell
        query, value = columns[0], int(columns[2])
        highest = max(highest, value)
        if query in last:
            several, is_rising = True, is_rising and value == last[query] + 1
        else:
            is_rising = is_rising and value in (0, 1)
        last[query] = value
    name = source.name.rpartition("/")[2].lower()
    if several and is_rising and "qrel" not in name:
        return RUN
    if highest > _MOST or "triple" in name:
        return TRIPLES
    return RUN if is_rising and "qrel" not in name and re.search(r"run|top\d|rank", name) else QRELS
