"""Tables in files, whose columns are what their headers say: CSV, TSV, Parquet, sheets, JSON with any keys. Pure."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from charts.cells import parse_csv_cell
from corpus.errors import BadInput
from corpus.formats import json_rows, parquet_rows, recognition, three_columns, workbooks
from corpus.formats.files import MAX_LINE, PARQUET, SHEET, TEXT, FileSource

# The library's own limit, 131,072 characters, is less than a long document.
csv.field_size_limit(MAX_LINE)

# What a column can be, with the headers that say so: small letters, what is no letter or digit as "_".
HEADERS = {
    "query_id": "query_id qid queryid q_id query_no query_number topic topic_id topic_no search_id question_id",
    "query": "query query_text querytext question question_text search search_term search_query keywords anchor",
    "answers": "answers answer reference_answer",
    "instruction": "instruction instructions",
    "doc_id": "doc_id docid docno document_id documentid d_id did corpus_id corpusid pid passage_id product_id",
    "title": "title doc_title document_title headline product_title",
    "text": "text document doc passage body content contents document_text doc_text passage_text abstract",
    "positive": "positive pos positive_passage positive_document positive_text pos_text positives",
    "negative": "negative neg negative_passage negative_document negative_text neg_text negatives",
    "positive_id": "positive_id pos_id positive_doc_id positive_docid positive_pid pos_pid doc_id_a",
    "negative_id": "negative_id neg_id negative_doc_id negative_docid negative_pid neg_pid doc_id_b",
    "grade": "grade label gold relevance rel rating judgment judgement qrel relevance_label relevance_grade",
    "score": "teacher_score score similarity",
    "assessor": "assessor annotator rater",
}
FIELDS = tuple(HEADERS)
METADATA, IGNORED = "metadata", "ignore"  # Of a column that is no field: kept with the text, or left out.
EVERY_FIELD = (*FIELDS, METADATA, IGNORED)
_FIELD_OF = {header: field for field, headers in HEADERS.items() for header in headers.split()}
_IDS = ("id", "identifier", "key")  # Of the query or of the document: the other columns tell.
_TASK = "annotation_id"  # The column by which Label Studio's tables are known; their column "id" is the task's.
_DELIMITERS = "\t,;|^~\x1f\x01"
_QUERIES = re.compile(r"quer|topic|question", re.IGNORECASE)  # In names of files.
_JSON = "json"
_OUR_LABELS = ("query_id", "doc_id", "grade", "origin")  # Our own labels.csv, whose cells no spreadsheet runs.


@dataclass(frozen=True)
class Table:
    """The structure of a file that is a table. `fields`: the meaning of each column, by its header."""

    delimiter: str  # "" where the form is none of text.
    header: tuple[str, ...]  # "column 1", "column 2", ... where the file has none.
    has_header: bool
    fields: dict[str, str]
    form: str = TEXT

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of the column of each field."""
        return {self.fields[name]: place for place, name in enumerate(self.header) if self.fields[name] in FIELDS}

    @property
    def has_assessors(self) -> bool:
        """True if the table names the assessor of each grade."""
        return {"assessor", "grade"} <= self.places.keys()

    @property
    def kind(self) -> str:
        """Kind of the table's content (corpus.importing.detection.KINDS); "": none is clear."""
        has = self.places.keys()
        has_texts = "text" in has or {"positive", "negative"} <= has
        has_documents = "doc_id" in has or {"positive_id", "negative_id"} <= has
        if "query" in has and has_texts:
            return "all"
        if "query" in has:
            return "queries-pairs" if has_documents else "queries"
        # Documents may have a column of topics: only a grade or a score makes a pair of a row.
        if has_texts:
            is_pair = "query_id" in has and has & {"grade", "score", "positive"}
            return "documents-pairs" if is_pair else "documents"
        if "query_id" in has and has_documents:
            if self.has_assessors:
                return "judgments"
            return "qrels" if "grade" in has and "score" not in has else "pairs"
        return ""

    @property
    def repeats_texts(self) -> bool:
        """True if each row is a pair, so that one text may stand in many rows."""
        return self.kind in ("all", "queries-pairs", "documents-pairs")


def about_queries(name: str) -> bool:
    """Return whether the name of a file says that it holds queries."""
    return bool(_QUERIES.search(name.rpartition("/")[2]))


def read_table(source: FileSource) -> Table | None:
    """Return how the file is a table, or None for our own JSON, XML and a file of one column.

    Raises BadInput for a header that stands twice, and for two columns that are the same field.
    """
    if source.form == PARQUET:
        return _build_table(source, 1, parquet_rows.read_header(source), form=PARQUET)
    if source.form == SHEET:
        number, cells = next(workbooks.read_sheet(source), (1, []))
        return _build_table(source, number, _name_columns(cells), form=SHEET)
    number, line = source.first()
    if not number or line[:1] == b"<":
        return None
    if line[:1] in b"{[":
        return _read_json_table(source, number)
    text = source.decode(number, line)
    widths = {one: len(next(csv.reader([text], delimiter=one))) for one in _DELIMITERS}
    # The one that cuts the first line into most columns; of equals the first of the list.
    delimiter = max(_DELIMITERS, key=lambda one: widths[one])
    if widths[delimiter] < 2:
        return None
    cells = [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter))]
    # Known files without a header, as MS MARCO's, have tabs; a first line with commas is a header.
    has_header = not (delimiter == "\t" and _is_data(source, cells))
    header = _name_columns(cells if has_header else [""] * len(cells))
    return _build_table(source, number, header, delimiter=delimiter, first=() if has_header else cells)


def _read_json_table(source: FileSource, number: int) -> Table | None:
    columns = json_rows.read_columns(source)
    if columns is None:
        return None
    header, answers = columns
    table = _build_table(source, number, header, form=_JSON, answers=answers)
    # Another tool's texts with labels that speak of no query are not what a person wants to import.
    is_tool = not answers and table.kind in ("", "documents", "queries") and not source.fields
    if is_tool and (known := recognition.tool_of(source.head())):
        raise source.bad(number, str(known))
    return table


def _name_columns(cells: Sequence[str]) -> tuple[str, ...]:
    return tuple(cell or f"column {n}" for n, cell in enumerate(map(str.strip, cells), 1))


def _build_table(
    source: FileSource,
    number: int,
    header: tuple[str, ...],
    *,
    delimiter: str = "",
    form: str = TEXT,
    first: Sequence[str] = (),
    answers: Sequence[str] = (),
) -> Table:
    """Return the table with what its columns are. `first`: the first row of a file without a header."""
    if twice := next((name for place, name in enumerate(header) if name in header[:place]), ""):
        raise source.bad(number, _('two columns have the header "%(header)s"; rename one') % {"header": twice})
    fields = _choose_fields(source, header, first, answers)
    table = Table(delimiter, header, not first, fields, form)
    for field in FIELDS:
        same = [name for name in header if fields[name] == field]
        if len(same) > 1:
            said = _('the columns "%(first)s" and "%(second)s" are both "%(field)s"; choose one')
            raise source.bad(number, said % {"first": same[0], "second": same[1], "field": field})
    return table


def require_fields(source: FileSource, table: Table, fields: tuple[str, ...]) -> None:
    """Raise BadInput where the table lacks a column of these."""
    for field in fields:
        if field not in table.places:
            said = _(
                '%(file)s: no column is "%(field)s"; the columns are %(names)s; name it with --column HEADER=%(field)s'
            )
            raise BadInput(said % {"file": source, "field": field, "names": ", ".join(table.header)})


def read_rows(source: FileSource, table: Table) -> Iterator[tuple[int, list[str]]]:
    """Yield (line where it begins, cells) of each row. Raises BadInput for a row with more or fewer columns."""
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
    last = 0

    def lines() -> Iterator[str]:
        nonlocal last
        for number, text in source.texts(blank=True):
            last = number
            yield text + "\n"

    # Without a header, as in MS MARCO's files, a double quote is a character like any other.
    if table.has_header:
        reader = csv.reader(lines(), delimiter=table.delimiter, strict=True)
    else:
        reader = csv.reader(lines(), delimiter=table.delimiter, quoting=csv.QUOTE_NONE)
    begins, skip, is_ours = 1, table.has_header, table.header == _OUR_LABELS
    try:
        for row in reader:
            line, begins = begins, last + 1
            if row and not skip:
                yield line, [parse_csv_cell(cell) for cell in row] if is_ours else row
            skip = skip and not row
    except csv.Error as error:
        closed = "expected after" in str(error)
        problem = (
            _('text after a closing quote; write a quote inside a quoted text twice: ""')
            if closed
            else _('a quoted text that does not end; write a quote inside a quoted text twice: ""')
        )
        raise source.bad(begins, problem) from None


def _is_data(source: FileSource, cells: list[str]) -> bool:
    """Return whether the first line of a file is data already, as in MS MARCO's files, and no known header."""
    if any(_simplify(cell) in _FIELD_OF or _simplify(cell) in _IDS for cell in cells):
        return False
    if len(cells) == 3:
        return bool(three_columns.kind_of(source, cells))
    return len(cells) in (2, 4) and any(map(str.isdigit, cells[0])) and " " not in cells[0]


def _simplify(header: str) -> str:
    return re.sub(r"[^0-9a-z]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", header).lower()).strip("_")


def _choose_fields(
    source: FileSource, header: tuple[str, ...], first: Sequence[str], answers: Sequence[str]
) -> dict[str, str]:
    """Return what each column is: as the user said, else as its header says, the first one of each field."""
    found = {name: source.fields[name] for name in header if name in source.fields}
    if wrong := next((value for value in found.values() if value not in EVERY_FIELD), ""):
        said = _('%(file)s: a column cannot be "%(field)s"; it can be %(fields)s')
        raise BadInput(said % {"file": source, "field": wrong, "fields": ", ".join(EVERY_FIELD)})
    guessed = _guess_without_header(source, header, first) if first else _guess_fields(source.name, header)
    # What people answered is the grade, whatever the question was called, where they were asked one thing.
    if len(answers) == 1 and "grade" not in guessed.values():
        guessed[answers[0]] = "grade"
    taken = set(found.values())
    for name in header:
        if name in found:
            continue
        # A column without a header, as programs write their row numbers.
        is_unnamed = not first and re.fullmatch(r"column \d+", name)
        field = guessed.get(name, IGNORED if is_unnamed else METADATA)
        found[name] = METADATA if field in taken - {METADATA, IGNORED} else field
        taken.add(found[name])
    return found


def _guess_fields(file: str, header: tuple[str, ...]) -> dict[str, str]:
    simple = {name: _simplify(name) for name in header}
    found = {name: _FIELD_OF[one] for name, one in simple.items() if one in _FIELD_OF}
    # BEIR's qrels call the grade a score.
    if sorted(simple.values()) == ["corpus_id", "query_id", "score"]:
        return {name: "grade" if field == "score" else field for name, field in found.items()}
    fields = set(found.values())
    # A file of queries may call their text simply "text", and TREC's topics call it their title.
    if "query" not in fields and not fields & {"doc_id", "grade", "score"}:
        called = "text" if "text" in simple.values() else "title" if not fields & {"text"} else ""
        is_topic = "query_id" in fields and not (called == "text" and "title" in fields)
        if called and called in simple.values() and (is_topic or (about_queries(file) and "title" not in fields)):
            found = {name: "query" if simple[name] == called else field for name, field in found.items()}
            fields = set(found.values())
    # Triples of ids alone.
    if "query_id" in fields and "query" not in fields:
        found = {name: f"{field}_id" if field in ("positive", "negative") else field for name, field in found.items()}
    ids = [name for name, one in simple.items() if one in _IDS and name not in found]
    if ids and _TASK not in simple.values():
        owner = "doc_id" if "text" in fields else "query_id" if "query" in fields else ""
        if owner and owner not in fields:
            found[ids[0]] = owner
    return found


def _guess_without_header(source: FileSource, header: tuple[str, ...], first: Sequence[str]) -> dict[str, str]:
    """Guess the columns of MS MARCO's files: id and text; id, address, title and text; triples; passages to rerank."""
    if len(header) == 2:
        fields: tuple[str, ...] = ("query_id", "query") if about_queries(source.name) else ("doc_id", "text")
    elif len(header) == 3:
        fields = three_columns.FIELDS[three_columns.kind_of(source, first)]
    elif first[0].isdigit() and first[1].isdigit():
        fields = ("query_id", "doc_id", "query", "text")
    else:
        fields = ("doc_id", METADATA, "title", "text")
    return dict(zip(header, fields, strict=True))
