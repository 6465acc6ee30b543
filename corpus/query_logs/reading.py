"""Reading a query log: a table with queries and counts, or one query a line. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from django.utils.translation import gettext as _

from corpus.errors import BadInput, OptionWouldHelp
from corpus.formats.files import TEXT, FileSource
from corpus.importing import tables
from corpus.importing.columns import name_fields, simplify
from corpus.importing.tables import Table

# Names of columns of counts, the likeliest first.
COUNTS = (
    "count", "counts", "query_count", "search_count", "frequency", "freq", "occurrences", "searches", "search_volume",
    "impressions", "requests", "times", "volume", "hits", "total", "n",
)  # fmt: skip
QUERIES = ("query", "query_id", "text")  # Fields that may be the queries, the first one that a column has.
LARGEST = 10**12  # Larger counts are no counts of searches, and their sums would not fit.
SHARE = 0.8  # Of the first lines: with as many cells as the first one they are a table.
_COUNT = re.compile(r"\+?(\d{1,3}(?:,\d{3})+|\d+)(?:\.0+)?")


class LogQuery(NamedTuple):
    """A query of a log: its id, its most frequent form, and how often it was asked in any form."""

    id: str
    text: str
    times: int


@dataclass(frozen=True)
class QueryLog:
    """The queries of a log, the most frequent first, and what was left out."""

    queries: list[LogQuery]
    lines: int  # Rows of the table, or lines.
    empty: int  # Of these, without a query.
    unasked: int  # Of these, with a count of 0.
    has_counts: bool  # The log has a column of counts; otherwise each line counts once.

    @property
    def traffic(self) -> int:
        """Return how often all queries together were asked."""
        return sum(query.times for query in self.queries)


def tidy(text: str) -> str:
    """Return a query in NFC, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def id_of(text: str) -> str:
    """Return the id of a query, the same in every log and for forms that differ in case, spaces or composition alone.

    It is q and 16 hexadecimal digits of the sha256 of the tidy text in folded case.
    """
    words = unicodedata.normalize("NFC", tidy(text).casefold())
    return f"q{sha256(words.encode()).hexdigest()[:16]}"


def read_log(source: FileSource, columns: Mapping[str, str] | None = None) -> QueryLog:
    """Read a log, and add up the counts of queries with the same id.

    `columns`: header to "query" or "count", where headers do not say so themselves. Raises BadInput for a table without
    a column of queries, for a count that is none, and for a log without a query.
    """
    asked: Counter[str] = Counter()
    lines = empty = unasked = 0
    table = _read_table(source, columns or {})
    for text, count in _rows(source, *table) if table else _lines(source):
        lines += 1
        if not text or text.isspace():
            empty += 1
        elif not count:
            unasked += 1
        else:
            asked[tidy(text)] += count
    if not asked:
        raise BadInput(_("%(file)s: the log has no query") % {"file": source})
    times: Counter[str] = Counter()
    best_forms: dict[str, str] = {}
    for text, count in asked.items():
        name = id_of(text)
        times[name] += count
        best = best_forms.setdefault(name, text)
        # Of equally frequent forms the first by its letters, so that the order of a file decides nothing.
        if (-count, text) < (-asked[best], best):
            best_forms[name] = text
    queries = [LogQuery(name, best_forms[name], count) for name, count in times.items()]
    queries.sort(key=lambda query: (-query.times, query.id))
    return QueryLog(queries, lines, empty, unasked, bool(table and table[2] is not None))


def _read_table(source: FileSource, columns: Mapping[str, str]) -> tuple[Table, int, int | None, bool] | None:
    """Return the table with the positions of queries and counts, and whether its header is a row; None for lines."""
    wrong = next((field for field in columns.values() if field not in ("query", "count")), "")
    if wrong:
        message = _('%(file)s: a column of a query log cannot be "%(field)s"; it can be query or count')
        raise BadInput(message % {"file": source, "field": wrong})
    number, first = source.first() if source.form == TEXT else (1, b"")
    if not number:
        raise BadInput(_("%(file)s: the file is empty") % {"file": source})
    table = tables.read_table(source)
    if table is None:
        if source.form == TEXT and first[:1] not in b"{[<":
            _check_names(source, columns, ())
            return None
        raise source.bad(number, _("neither a table of queries and counts nor one query a line"))
    _check_names(source, columns, table.header)
    position_of = {name: position for position, name in enumerate(table.header)}
    named = {field: position_of[header] for header, field in columns.items()}
    # The fields of names come first: of queries in digits or single words the reader of tables makes ids.
    by_name = name_fields(table.header)
    queries = [position_of[name] for field in QUERIES for name in table.header if by_name.get(name) == field]
    queries += [table.places[field] for field in QUERIES if field in table.places]
    query = named.get("query", next(iter(queries), None))
    counts = {simplify(name): position for position, name in enumerate(table.header) if position != query}
    count = named.get("count", next((counts[name] for name in COUNTS if name in counts), None))
    if query is None and len(table.header) == 2 and table.delimiter and _COUNT.fullmatch(table.header[1].strip()):
        return table, 0, 1, True
    if query is not None:
        return table, query, count, False
    rows = table.first_rows
    is_table = source.form != TEXT or bool(columns) or not table.delimiter
    is_table = is_table or sum(len(row) == len(table.header) for row in rows) >= SHARE * len(rows) > 0
    # Lines of words and commas are queries, unless most of them have as many commas as the first.
    if not is_table:
        return None
    message = _('%(file)s: no column is "query" among %(names)s: map the column of the queries to it')
    raise OptionWouldHelp("column", message % {"file": source, "names": tables.list_names(table.header)})


def _check_names(source: FileSource, columns: Mapping[str, str], header: tuple[str, ...]) -> None:
    if missing := next((name for name in columns if name not in header), ""):
        message = _('%(file)s: no column has the header "%(header)s"')
        raise OptionWouldHelp("column", message % {"file": source, "header": missing})


def _rows(
    source: FileSource, table: Table, query: int, count: int | None, header_is_row: bool
) -> Iterator[tuple[str, int]]:
    if header_is_row:
        yield table.header[query], _read_count(source, table.begins, table.header[1])
    for line, row in tables.read_rows(source, table):
        yield row[query], 1 if count is None else _read_count(source, line, row[count])


def _lines(source: FileSource) -> Iterator[tuple[str, int]]:
    for _number, text in source.texts(blank=True):
        yield text, 1


def _read_count(source: FileSource, line: int, cell: str) -> int:
    match = _COUNT.fullmatch(cell.strip())
    count = int(match[1].replace(",", "")) if match else -1
    if not 0 <= count <= LARGEST:
        raise source.bad(line, _('the count is no whole number: "%(count)s"') % {"count": cell.strip()[:40]})
    return count
