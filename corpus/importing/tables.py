"""Tables in files, whose columns are what their headers say: CSV, TSV, Parquet, sheets, JSON with any keys. Pure."""

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TypeVar

from django.utils.translation import gettext as _

from charts.cells import parse_csv_cell
from corpus.errors import BadInput, OptionWouldHelp
from corpus.formats import json_rows, parquet_rows, recognition, three_columns, workbooks
from corpus.formats.files import MAX_COLUMNS, MAX_LINE, PARQUET, SHEET, TEXT, FileSource
from corpus.importing import columns
from corpus.importing.columns import EVERY_FIELD, FIELDS, IGNORED, METADATA

# The library's own limit, 131,072 characters, is less than a long document.
csv.field_size_limit(MAX_LINE)

MAX_NAMES = 50  # Of columns in an error.
_DELIMITERS = "\t,;|^~\x1f\x01"
BLANKS = " "  # The delimiter of a table whose columns stand between blanks, as in TREC's files.
_QUERIES = re.compile(r"quer|topic|question", re.IGNORECASE)  # In names of files.
_SEPARATOR = re.compile(r'"?sep=(\\t|.)"?\s*', re.IGNORECASE)  # Excel's own first line.
_OBJECTS = "objects"  # Of JSON, and of Parquet whose rows hold several judgments.
_OUR_LABELS = ("query_id", "doc_id", "grade", "origin")  # Our own labels.csv, whose cells no spreadsheet runs.
LOOKED_AT, LOOKED_AT_CHARACTERS = 100, 1 << 18  # Rows at the beginning that show what the columns are.
Rows = list[list[str]]
T = TypeVar("T")


@dataclass(frozen=True)
class Table:
    """The structure of a table file. `fields`: columns' meanings, by header."""

    delimiter: str  # "" where the form is none of text.
    header: tuple[str, ...]  # "column 1", "column 2", ... where the file has none.
    has_header: bool
    fields: dict[str, str]
    form: str = TEXT
    begins: int = 1  # The line of the header, or of the first row of a file without one.
    first_rows: tuple[list[str], ...] = ()

    @cached_property
    def columns(self) -> dict[str, list[int]]:
        """Column indexes of each field: lists of documents and grades may have several."""
        found: dict[str, list[int]] = {}
        for place, name in enumerate(self.header):
            if (field := self.fields[name]) in FIELDS:
                found.setdefault(field, []).append(place)
        return found

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of the column of each field, of several the first."""
        return {field: places[0] for field, places in self.columns.items()}

    @cached_property
    def has_lists(self) -> bool:
        """True if a row may hold several documents."""
        return bool(self.places.keys() & columns.LISTS) or self.lists_ids

    @cached_property
    def lists_ids(self) -> bool:
        """True if the column of document ids holds lists of them."""
        place = self.places.get("doc_id")
        return place is not None and any(row[place][:1] == "[" for row in self.first_rows if place < len(row))

    @property
    def names_assessors(self) -> bool:
        """True if each column of grades is one assessor's."""
        return len(self.columns.get("grade", ())) > 1

    @property
    def has_assessors(self) -> bool:
        """True if the table names the assessor of each grade."""
        return {"assessor", "grade"} <= self.places.keys() or self.names_assessors

    @property
    def kind(self) -> str:
        """Kind of the table's content (corpus.importing.detection.KINDS); "": none is clear."""
        has = self.places.keys()
        has_texts = bool(has & {"text", "positive", "negative", "passages"})
        has_documents = bool(has & {"doc_id", "positive_id", "negative_id"})
        if "query" in has and has_texts:
            return "all"
        if "query" in has:
            return "queries-pairs" if has_documents else "queries"
        if has_texts:
            is_pair = has & {"grade", "score", "doc_id", "positive", "negative", "passages"}
            return "documents-pairs" if "query_id" in has and is_pair else "documents"
        if "query_id" in has and has_documents:
            if self.has_assessors:
                return "judgments"
            if "rank" in has and "grade" not in has:
                return "runs"
            return "qrels" if "grade" in has and "score" not in has else "pairs"
        return ""

    @property
    def problem(self) -> str:
        """Why the table is not imported as it is understood; "" where it can be."""
        return columns.find_problem(self.kind, self.header, self.fields, self.first_rows)

    @property
    def repeats_texts(self) -> bool:
        """True if each row is a pair, so that one text may stand in many rows."""
        return self.kind in ("all", "queries-pairs", "documents-pairs")


def about_queries(name: str) -> bool:
    """Return whether the name of a file says that it holds queries."""
    return bool(_QUERIES.search(name.rpartition("/")[2]))


def read_table(source: FileSource) -> Table | None:
    """Return how the file is a table; None for our own JSON, XML, one column. Raises BadInput for a bad header."""
    if source.form == PARQUET:
        if table := _read_json_table(source, 1):
            return table
        header = parquet_rows.read_header(source)
        return _build_table(source, 1, header, _first_rows(parquet_rows.read_rows(source, ())), form=PARQUET)
    if source.form == SHEET:
        sheet = workbooks.read_sheet(source)
        number, cells = next(sheet, (1, []))
        return _build_table(source, number, _name_columns(cells), _first_rows(sheet), form=SHEET)
    number, line = source.first()
    if not number or line[:1] == b"<":
        return None
    if line[:1] in b"{[":
        return _read_json_table(source, number)
    lines = _first_lines(source)
    separator = _SEPARATOR.fullmatch(lines[0][1]) if lines else None
    # From the first line that is no comment on; `#query_id` begins a header and no comment.
    begins = 1 if separator else len(lines)
    for place, (_number, text) in enumerate(lines if not separator else ()):
        if not text.startswith("#") or columns.name_pair(_name_columns(re.split(r"[\s,;|]+", text))):
            begins = place
            break
    lines = lines[begins:]
    if not lines:
        return None
    delimiter = separator[1].replace("\\t", "\t") if separator else _choose_delimiter([text for _n, text in lines])
    number, text = lines[0]
    if not delimiter:
        # Columns between blanks are a table where names say so; else TREC's files are read by their places.
        named = _name_columns(text.split())
        is_named = len(named) > 2 and columns.name_pair(named)
        return (
            _build_table(source, number, named, [row.split() for _n, row in lines[1:]], delimiter=BLANKS)
            if is_named
            else None
        )
    cells = [cell.strip() for cell in _split(text, delimiter)]
    if len(cells) < 2:
        return None
    # Known files without a header, as MS MARCO's, have tabs; a first line with commas is a header.
    has_header = True
    is_known = columns.name_fields(cells) or any(columns.simplify(cell) in columns.IDS for cell in cells)
    if delimiter == "\t" and not is_known:
        if len(cells) == 3:
            has_header = not three_columns.kind_of(source, cells)
        else:
            has_header = len(cells) not in (2, 4) or not any(map(str.isdigit, cells[0])) or " " in cells[0]
    header = _name_columns(cells if has_header else [""] * len(cells))
    rows = _split_rows([text for _n, text in lines], delimiter, quoted=has_header)
    return _build_table(source, number, header, rows[has_header:], delimiter=delimiter, has_header=has_header)


def _first_lines(source: FileSource) -> list[tuple[int, str]]:
    """Return the first lines with their numbers, without blank ones at the beginning and lines of delimiters alone."""
    lines: list[tuple[int, str]] = []
    size = 0
    for number, text in _as_far_as_read(source.texts(blank=True)):
        if not lines and not text.strip(",;\t| "):
            continue
        lines.append((number, text))
        size += len(text)
        if len(lines) > LOOKED_AT or size > LOOKED_AT_CHARACTERS:
            break
    return lines


def _first_rows(rows: Iterator[tuple[int, list[str]]]) -> Rows:
    """Return a Parquet file's, sheet's or JSON's first rows; none if unreadable."""
    found: Rows = []
    with suppress(BadInput):
        found += [row for _number, row in islice(_as_far_as_read(rows), LOOKED_AT)]
    return found


def _as_far_as_read(rows: Iterator[T]) -> Iterator[T]:
    """Yield the first rows up to one that cannot be read, of which the importer will tell; a bad first one raises."""
    is_first = True
    try:
        for row in islice(rows, 2 * LOOKED_AT):
            yield row
            is_first = False
    except BadInput:
        if is_first:
            raise


def _split(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return text.split(delimiter)


def _split_rows(lines: Sequence[str], delimiter: str, *, quoted: bool) -> Rows:
    """Return the rows of lines as far as they can be read; the last may be cut."""
    ended = (f"{text}\n" for text in lines)
    reader = csv.reader(ended, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)
    rows: Rows = []
    with suppress(csv.Error):
        rows.extend(row for row in reader if any(row))
    return rows


def _choose_delimiter(lines: Sequence[str]) -> str:
    """Return what cuts the first lines into columns; "" for nothing.

    It cuts the rows into as many columns as the header has. Of several that do so a tab goes first,
    for texts hold commas and hardly tabs; then the one whose header has the more known names, then
    the more columns.
    """
    best: tuple[bool, bool, int, float, int] = (False, False, 0, 0.0, 1)
    chosen = ""
    for delimiter in _DELIMITERS:
        if delimiter not in lines[0]:
            continue
        # In a file without a header a double quote is a character like any other, as in MS MARCO's files.
        widths = [[len(row) for row in _split_rows(lines, delimiter, quoted=quoted)] for quoted in (True, False)]
        share = max(sum(width == some[0] for width in some) / len(some) if some else 0.0 for some in widths)
        header = _split(lines[0], delimiter)
        rank = (share >= 0.8, delimiter == "\t", len(columns.name_fields(header)), share, len(header))
        if len(header) > 1 and rank > best:
            best, chosen = rank, delimiter
    return chosen


def _read_json_table(source: FileSource, number: int) -> Table | None:
    found = json_rows.read_columns(source)
    if found is None:
        return None
    header, answers = found
    first = _first_rows(json_rows.read_rows(source, header))
    table = _build_table(source, number, header, first, form=_OBJECTS, answers=answers)
    # Another tool's texts with labels that speak of no query are not what a person wants to import.
    is_tool = source.form == TEXT and not answers and table.kind in ("", "documents", "queries") and not source.fields
    if is_tool and (known := recognition.tool_of(source.head())):
        raise source.bad(number, str(known))
    return table


def _name_columns(cells: Sequence[str]) -> tuple[str, ...]:
    return tuple(cell or f"column {n}" for n, cell in enumerate(map(str.strip, cells), 1))


def _build_table(
    source: FileSource,
    number: int,
    header: tuple[str, ...],
    first: Rows,
    *,
    delimiter: str = "",
    form: str = TEXT,
    has_header: bool = True,
    answers: Sequence[str] = (),
) -> Table:
    """Return the table with what its columns are. `first`: its first rows."""
    if len(header) > MAX_COLUMNS:
        said = _("%(n)s columns; a table has at most %(most)s")
        raise source.bad(number, said % {"n": f"{len(header):,}", "most": f"{MAX_COLUMNS:,}"})
    counts = Counter(header)
    if twice := next((name for name in header if counts[name] > 1), ""):
        raise source.bad(number, _('two columns have the header "%(header)s"; rename one') % {"header": twice})
    fields = _choose_fields(source, header, first, answers, has_header=has_header)
    table = Table(delimiter, header, has_header, fields, form, number, tuple(first))
    for field, places in table.columns.items():
        same = [header[place] for place in places]
        if len(same) > 1 and field not in columns.LISTS and not columns.name_assessors(same, source.fields, of=header):
            said = _('the columns "%(first)s" and "%(second)s" are both "%(field)s"; choose one')
            raise source.bad(number, said % {"first": same[0], "second": same[1], "field": field})
    return table


def require_fields(source: FileSource, table: Table, fields: tuple[str, ...]) -> None:
    """Raise BadInput where the table lacks a column of these."""
    for field in fields:
        if field not in table.places:
            said = _('%(file)s: no column is "%(field)s" among %(names)s: map %(header)s to it')
            header = columns.name_column(columns.likely_header(field, table.header, table.fields, table.first_rows))
            names = list_names(table.header)
            raise OptionWouldHelp("column", said % {"file": source, "field": field, "names": names, "header": header})


def list_names(header: Sequence[str]) -> str:
    """Return columns' names for an error: the first, where there are hundreds."""
    shown = ", ".join(header[:MAX_NAMES])
    more = _("%(n)s more") % {"n": f"{len(header) - MAX_NAMES:,}"}
    return shown if len(header) <= MAX_NAMES else f"{shown}, ... ({more})"


def read_rows(source: FileSource, table: Table) -> Iterator[tuple[int, list[str]]]:
    """Yield (first line, cells) of each row. BadInput for another number of columns."""
    for line, row in read_ragged_rows(source, table):
        if len(row) != len(table.header):
            said = _("%(n)s columns instead of %(expected)s; put a text that holds the delimiter into double quotes")
            raise source.bad(line, said % {"n": len(row), "expected": len(table.header)})
        yield line, row


def read_ragged_rows(source: FileSource, table: Table) -> Iterator[tuple[int, list[str]]]:
    """Yield what `read_rows` does, whatever the number of columns is."""
    if table.form == TEXT:
        yield from _read_lines(source, table)
        return
    rows: Iterator[tuple[int, list[str]]]
    if table.form == PARQUET:
        rows = parquet_rows.read_rows(source, {name for name, field in table.fields.items() if field == IGNORED})
    elif table.form == SHEET:
        rows = workbooks.read_sheet(source)
        next(rows, None)  # the header
    else:
        rows = json_rows.read_rows(source, table.header)
    for number, row in rows:
        # PostgreSQL's text cannot hold it.
        if any("\0" in cell for cell in row):
            raise source.bad(number, _("a NUL character; remove it"))
        yield number, row


def _read_lines(source: FileSource, table: Table) -> Iterator[tuple[int, list[str]]]:
    if table.delimiter == BLANKS:
        for number, text in source.texts():
            if number > table.begins and not text.startswith("#"):
                yield number, text.split()
        return
    last = 0

    def lines() -> Iterator[str]:
        nonlocal last
        for number, text in source.texts(blank=True):
            last = number
            if number >= table.begins:
                yield text + "\n"

    # Without a header, as in MS MARCO's files, a double quote is a character like any other.
    reader = csv.reader(
        lines(), delimiter=table.delimiter, strict=table.has_header,
        quoting=csv.QUOTE_MINIMAL if table.has_header else csv.QUOTE_NONE,
    )  # fmt: skip
    begins, skip, is_ours = table.begins, table.has_header, table.header == _OUR_LABELS
    try:
        for row in reader:
            line, begins = begins, last + 1
            # Rows of delimiters alone, as Excel leaves them, say nothing.
            if any(row) and not skip:
                yield line, [parse_csv_cell(cell) for cell in row] if is_ours else row
            skip = skip and not row
    except csv.Error as error:
        problem = _("the columns cannot be told apart: %(error)s") % {"error": error}
        if "expected after" in str(error):
            problem = _('text after a closing quote; write a quote inside a quoted text twice: ""')
        elif "unexpected end" in str(error) or "field larger" in str(error):
            problem = _('a quoted text that does not end; write a quote inside a quoted text twice: ""')
        raise source.bad(begins, problem) from None


def _choose_fields(
    source: FileSource, header: tuple[str, ...], first: Rows, answers: Sequence[str], *, has_header: bool
) -> dict[str, str]:
    """Return what columns are: as the user or the header says, first of each field."""
    found = {name: source.fields[name] for name in header if name in source.fields}
    if wrong := next((value for value in found.values() if value not in EVERY_FIELD), ""):
        said = _('%(file)s: a column cannot be "%(field)s"; it can be %(fields)s')
        raise BadInput(said % {"file": source, "field": wrong, "fields": ", ".join(EVERY_FIELD)})
    if has_header:
        guessed = columns.guess_fields(header, first, is_about_queries=about_queries(source.name))
    else:
        cells = [cell.strip() for cell in first[0]] if first else []
        # MS MARCO's files: id and text; triples; passages to rerank; id, address, title and text.
        if len(header) == 2:
            places: tuple[str, ...] = ("query_id", "query") if about_queries(source.name) else ("doc_id", "text")
        elif len(header) == 3:
            places = three_columns.FIELDS[three_columns.kind_of(source, cells)]
        elif cells[0].isdigit() and cells[1].isdigit():
            places = ("query_id", "doc_id", "query", "text")
        else:
            places = ("doc_id", METADATA, "title", "text")
        guessed = dict(zip(header, places, strict=True))
    # What people answered is the grade, whatever the question was called, where they were asked one thing.
    if len(answers) == 1 and ("grade" not in guessed.values() or columns.Cells(header, first).are_grades(answers[0])):
        guessed = {name: field for name, field in guessed.items() if field != "grade"} | {answers[0]: "grade"}
    taken = set(found.values()) - columns.LISTS
    for name in header:
        if name in found:
            continue
        # A column without a header, as programs write their row numbers.
        is_unnamed = has_header and re.fullmatch(r"column \d+", name)
        field = guessed.get(name, IGNORED if is_unnamed else METADATA)
        found[name] = METADATA if field in taken - {METADATA, IGNORED} else field
        if not columns.name_assessors([name], {}, of=header):
            taken |= {found[name]} - columns.LISTS
    return found


def unused_columns(table: Table, parts: Collection[str]) -> dict[str, str]:
    """Return why each column is not read, by its header, where the file is read for `parts` (of detection.HOLDS)."""
    return columns.find_unused(table.kind, table.header, table.fields, parts, table.first_rows)


def describe_unused(source: FileSource, parts: Collection[str]) -> str:
    """Return a line that names a file's unread columns, with reasons; "" for none."""
    table = read_table(source)
    unused = unused_columns(table, parts) if table and table.has_header and table.places else {}
    told = "; ".join(f"{column} ({reason})" for column, reason in unused.items())
    return _("%(file)s: columns that are not read: %(columns)s") % {"file": source, "columns": told} if told else ""
