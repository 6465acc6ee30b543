"""Tables in files, with columns named by their headers: CSV, TSV, Parquet, sheets, and JSON with any keys. Pure."""

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

MAX_NAMES = 50  # Columns that an error lists.
_DELIMITERS = "\t,;|^~\x1f\x01"
BLANKS = " "  # The delimiter of a table whose columns are separated by blanks, as in TREC's files.
_QUERIES = re.compile(r"quer|topic|question", re.IGNORECASE)  # In names of files.
_SEPARATOR = re.compile(r'"?sep=(\\t|.)"?\s*', re.IGNORECASE)  # The first line in files of Excel.
_OBJECTS = "objects"  # The form of JSON, and of Parquet whose rows have several judgments.
_OUR_LABELS = ("query_id", "doc_id", "grade", "origin")  # Our own labels.csv, whose cells no spreadsheet runs.
LOOKED_AT, LOOKED_AT_CHARACTERS = 100, 1 << 18  # The first rows, which are inspected to identify the columns.
Rows = list[list[str]]
T = TypeVar("T")


@dataclass(frozen=True)
class Table:
    """The structure of a table file; `fields` are the fields of its columns, by header."""

    delimiter: str  # "" in files that are not text.
    header: tuple[str, ...]  # "column 1", "column 2", ... if the file has none.
    has_header: bool
    fields: dict[str, str]
    form: str = TEXT
    begins: int = 1  # The line of the header, or of the first row in a file without a header.
    first_rows: tuple[list[str], ...] = ()

    @cached_property
    def columns(self) -> dict[str, list[int]]:
        """The indexes of the columns of each field; lists of documents and grades may have several."""
        indexes: dict[str, list[int]] = {}
        for position, name in enumerate(self.header):
            if (field := self.fields[name]) in FIELDS:
                indexes.setdefault(field, []).append(position)
        return indexes

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of the first column of each field."""
        return {field: places[0] for field, places in self.columns.items()}

    @cached_property
    def has_lists(self) -> bool:
        """Whether a row may have several documents."""
        return bool(self.places.keys() & columns.LISTS) or self.lists_ids

    @cached_property
    def lists_ids(self) -> bool:
        """Whether the column of document ids contains lists."""
        position = self.places.get("doc_id")
        return position is not None and any(row[position][:1] == "[" for row in self.first_rows if position < len(row))

    @property
    def names_assessors(self) -> bool:
        """Whether each column of grades belongs to one assessor."""
        return len(self.columns.get("grade", ())) > 1

    @property
    def has_assessors(self) -> bool:
        """Whether the table names the assessor of each grade."""
        return {"assessor", "grade"} <= self.places.keys() or self.names_assessors

    @property
    def kind(self) -> str:
        """The kind of the table's content (corpus.importing.detection.KINDS); "" if it is unclear."""
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
        """Why the table cannot be imported; "" if it can."""
        return columns.find_problem(self.kind, self.header, self.fields, self.first_rows)

    @property
    def repeats_texts(self) -> bool:
        """Whether each row is a pair, so that texts may be repeated."""
        return self.kind in ("all", "queries-pairs", "documents-pairs")


def about_queries(name: str) -> bool:
    """Return whether a file contains queries, by its name."""
    return bool(_QUERIES.search(name.rpartition("/")[2]))


def read_table(source: FileSource) -> Table | None:
    """Return the structure of a table; None for our own JSON, XML, or one column. Raises BadInput for a bad header."""
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
    # The first lines with their numbers, without blank lines and lines of delimiters at the beginning.
    lines: list[tuple[int, str]] = []
    size = 0
    for number, text in _as_far_as_read(source.texts(blank=True)):
        if not lines and not text.strip(",;\t| "):
            continue
        lines.append((number, text))
        size += len(text)
        if len(lines) > LOOKED_AT or size > LOOKED_AT_CHARACTERS:
            break
    separator = _SEPARATOR.fullmatch(lines[0][1]) if lines else None
    # Start at the first line that is no comment; `#query_id` starts a header and no comment.
    begins = 1 if separator else len(lines)
    for position, (_number, text) in enumerate(lines if not separator else ()):
        if not text.startswith("#") or columns.name_pair(_name_columns(re.split(r"[\s,;|]+", text))):
            begins = position
            break
    lines = lines[begins:]
    if not lines:
        return None
    delimiter = separator[1].replace("\\t", "\t") if separator else _choose_delimiter([text for _n, text in lines])
    number, text = lines[0]
    if not delimiter:
        # Columns separated by blanks are a table only with known names; TREC's files have none.
        header = _name_columns(text.split())
        if len(header) < 3 or not columns.name_pair(header):
            return None
        return _build_table(source, number, header, [row.split() for _n, row in lines[1:]], delimiter=BLANKS)
    cells = [cell.strip() for cell in _split(text, delimiter)]
    if len(cells) < 2:
        return None
    # Files without a header, such as MS MARCO's, have tabs; a first line with commas is a header.
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


def _first_rows(rows: Iterator[tuple[int, list[str]]]) -> Rows:
    """Return the first rows of a Parquet file, a sheet or JSON; none if they cannot be read."""
    first_rows: Rows = []
    with suppress(BadInput):
        first_rows += [row for _number, row in islice(_as_far_as_read(rows), LOOKED_AT)]
    return first_rows


def _as_far_as_read(rows: Iterator[T]) -> Iterator[T]:
    """Yield the first rows up to one that cannot be read, which the import will report. Raises if it is the first."""
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
    """Return the rows of lines, as far as they can be read; the last one may be incomplete."""
    texts = (f"{text}\n" for text in lines)
    reader = csv.reader(texts, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)
    rows: Rows = []
    with suppress(csv.Error):
        rows.extend(row for row in reader if any(row))
    return rows


def _choose_delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter of the first lines; "" if there is none.

    It splits the rows into as many columns as the header. Among several such delimiters a tab is
    preferred, since texts contain commas but hardly tabs; then the one with more known names in the
    header, then with more columns.
    """
    best: tuple[bool, bool, int, float, int] = (False, False, 0, 0.0, 1)
    best_delimiter = ""
    for delimiter in _DELIMITERS:
        if delimiter not in lines[0]:
            continue
        # In files without a header, such as MS MARCO's, a double quote is an ordinary character.
        widths = [[len(row) for row in _split_rows(lines, delimiter, quoted=quoted)] for quoted in (True, False)]
        share = max(
            sum(width == row_widths[0] for width in row_widths) / len(row_widths) if row_widths else 0.0
            for row_widths in widths
        )
        header = _split(lines[0], delimiter)
        rank = (share >= 0.8, delimiter == "\t", len(columns.name_fields(header)), share, len(header))
        if len(header) > 1 and rank > best:
            best, best_delimiter = rank, delimiter
    return best_delimiter


def _read_json_table(source: FileSource, number: int) -> Table | None:
    json_columns = json_rows.read_columns(source)
    if json_columns is None:
        return None
    header, answers = json_columns
    first = _first_rows(json_rows.read_rows(source, header))
    table = _build_table(source, number, header, first, form=_OBJECTS, answers=answers)
    # Labelled texts of another tool that are not about queries are rejected with its name.
    is_tool = source.form == TEXT and not answers and table.kind in ("", "documents", "queries") and not source.fields
    if is_tool and (tool := recognition.tool_of(source.head())):
        raise source.bad(number, str(tool))
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
    """Return the table with the fields of its columns; `first` are its first rows."""
    if len(header) > MAX_COLUMNS:
        message = _("%(n)s columns; a table has at most %(most)s")
        raise source.bad(number, message % {"n": f"{len(header):,}", "most": f"{MAX_COLUMNS:,}"})
    counts = Counter(header)
    if twice := next((name for name in header if counts[name] > 1), ""):
        raise source.bad(number, _('two columns have the header "%(header)s"; rename one') % {"header": twice})
    fields = _choose_fields(source, header, first, answers, has_header=has_header)
    table = Table(delimiter, header, has_header, fields, form, number, tuple(first))
    for field, places in table.columns.items():
        same = [header[position] for position in places]
        if len(same) > 1 and field not in columns.LISTS and not columns.name_assessors(same, source.fields, of=header):
            message = _('the columns "%(first)s" and "%(second)s" are both "%(field)s"; choose one')
            raise source.bad(number, message % {"first": same[0], "second": same[1], "field": field})
    return table


def require_fields(source: FileSource, table: Table, fields: tuple[str, ...]) -> None:
    """Raise BadInput if the table lacks a column for one of these fields."""
    for field in fields:
        if field not in table.places:
            message = _('%(file)s: no column is "%(field)s" among %(names)s: map %(header)s to it')
            header = columns.name_column(columns.likely_header(field, table.header, table.fields, table.first_rows))
            names = list_names(table.header)
            raise OptionWouldHelp(
                "column", message % {"file": source, "field": field, "names": names, "header": header}
            )


def list_names(header: Sequence[str]) -> str:
    """Return the names of columns for an error; of hundreds only the first."""
    shown = ", ".join(header[:MAX_NAMES])
    more = _("%(n)s more") % {"n": f"{len(header) - MAX_NAMES:,}"}
    return shown if len(header) <= MAX_NAMES else f"{shown}, ... ({more})"


def read_rows(source: FileSource, table: Table) -> Iterator[tuple[int, list[str]]]:
    """Yield (first line, cells) of each row. Raises BadInput for a row with another number of columns."""
    for line, row in read_ragged_rows(source, table):
        if len(row) != len(table.header):
            message = _(
                "%(n)s columns instead of %(expected)s; put a text that contains the delimiter into double quotes"
            )
            raise source.bad(line, message % {"n": len(row), "expected": len(table.header)})
        yield line, row


def read_ragged_rows(source: FileSource, table: Table) -> Iterator[tuple[int, list[str]]]:
    """Yield (first line, cells) of each row, with any number of columns."""
    if table.form == TEXT:
        yield from _read_lines(source, table)
        return
    rows: Iterator[tuple[int, list[str]]]
    if table.form == PARQUET:
        rows = parquet_rows.read_rows(source, {name for name, field in table.fields.items() if field == IGNORED})
    elif table.form == SHEET:
        rows = workbooks.read_sheet(source)
        # Skip the header.
        next(rows, None)
    else:
        rows = json_rows.read_rows(source, table.header)
    for number, row in rows:
        # PostgreSQL cannot store NUL in a text.
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

    # In files without a header, such as MS MARCO's, a double quote is an ordinary character.
    reader = csv.reader(
        lines(), delimiter=table.delimiter, strict=table.has_header,
        quoting=csv.QUOTE_MINIMAL if table.has_header else csv.QUOTE_NONE,
    )  # fmt: skip
    begins, skip, is_ours = table.begins, table.has_header, table.header == _OUR_LABELS
    try:
        for row in reader:
            line, begins = begins, last + 1
            # Skip rows of delimiters alone, which Excel leaves.
            if any(row) and not skip:
                yield line, [parse_csv_cell(cell) for cell in row] if is_ours else row
            skip = skip and not row
    except csv.Error as error:
        problem = _("the columns cannot be distinguished: %(error)s") % {"error": error}
        if "expected after" in str(error):
            problem = _('text after a closing quote; write a quote inside a quoted text twice: ""')
        elif "unexpected end" in str(error) or "field larger" in str(error):
            problem = _('a quoted text that does not end; write a quote inside a quoted text twice: ""')
        raise source.bad(begins, problem) from None


def _choose_fields(
    source: FileSource, header: tuple[str, ...], first: Rows, answers: Sequence[str], *, has_header: bool
) -> dict[str, str]:
    """Return the fields of columns, as chosen by the user or guessed from the header; each field at most once."""
    column_fields = {name: source.fields[name] for name in header if name in source.fields}
    if wrong := next((value for value in column_fields.values() if value not in EVERY_FIELD), ""):
        message = _('%(file)s: a column cannot be "%(field)s"; it can be %(fields)s')
        raise BadInput(message % {"file": source, "field": wrong, "fields": ", ".join(EVERY_FIELD)})
    if has_header:
        guessed = columns.guess_fields(header, first, is_about_queries=about_queries(source.name))
    else:
        cells = [cell.strip() for cell in first[0]] if first else []
        # The files of MS MARCO: id and text; triples; passages to rerank; id, address, title and text.
        if len(header) == 2:
            places: tuple[str, ...] = ("query_id", "query") if about_queries(source.name) else ("doc_id", "text")
        elif len(header) == 3:
            places = three_columns.FIELDS[three_columns.kind_of(source, cells)]
        elif cells[0].isdigit() and cells[1].isdigit():
            places = ("query_id", "doc_id", "query", "text")
        else:
            places = ("doc_id", METADATA, "title", "text")
        guessed = dict(zip(header, places, strict=True))
    # In exports of annotation tools with a single question, its answers are the grades.
    if len(answers) == 1 and ("grade" not in guessed.values() or columns.Cells(header, first).are_grades(answers[0])):
        guessed = {name: field for name, field in guessed.items() if field != "grade"} | {answers[0]: "grade"}
    taken = set(column_fields.values()) - columns.LISTS
    for name in header:
        if name in column_fields:
            continue
        # A column without a header often has row numbers.
        is_unnamed = has_header and re.fullmatch(r"column \d+", name)
        field = guessed.get(name, IGNORED if is_unnamed else METADATA)
        column_fields[name] = METADATA if field in taken - {METADATA, IGNORED} else field
        if not columns.name_assessors([name], {}, of=header):
            taken |= {column_fields[name]} - columns.LISTS
    return column_fields


def unused_columns(table: Table, parts: Collection[str]) -> dict[str, str]:
    """Return the columns that are not read, by header, with the reasons; `parts` (detection.HOLDS) are read."""
    return columns.find_unused(table.kind, table.header, table.fields, parts, table.first_rows)


def describe_unused(source: FileSource, parts: Collection[str]) -> str:
    """Return a message about the columns of a file that are not read; "" if all are."""
    table = read_table(source)
    unused = unused_columns(table, parts) if table and table.has_header and table.places else {}
    descriptions = "; ".join(f"{column} ({reason})" for column, reason in unused.items())
    return (
        _("%(file)s: columns that are not read: %(columns)s") % {"file": source, "columns": descriptions}
        if descriptions
        else ""
    )
