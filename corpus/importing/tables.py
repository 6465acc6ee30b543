"""Tables in files: CSV, TSV and their like, whose columns are what their headers say. Pure."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.importing.files import MAX_LINE, FileSource

csv.field_size_limit(MAX_LINE)  # The library's own limit, 131,072 characters, is less than a long document.

# What a column can be, with the headers that say so: small letters, what is no letter or digit as "_".
HEADERS = {
    "query_id": "query_id qid queryid q_id query_no query_number topic topic_id topic_no search_id question_id",
    "query": "query query_text querytext question question_text search search_term search_query keywords",
    "answers": "answers answer reference_answer",
    "instruction": "instruction instructions",
    "doc_id": "doc_id docid docno document_id documentid d_id did corpus_id corpusid pid passage_id product_id",
    "title": "title doc_title document_title headline product_title",
    "text": "text document doc passage body content contents document_text doc_text passage_text abstract",
    "grade": "grade label gold relevance rel rating judgment judgement qrel relevance_label relevance_grade",
    "score": "teacher_score score similarity",
    "assessor": "assessor annotator rater",
}
FIELDS = tuple(HEADERS)
METADATA, IGNORED = "metadata", "ignore"  # Of a column that is no field: kept with the text, or left out.
EVERY_FIELD = (*FIELDS, METADATA, IGNORED)
_FIELD_OF = {header: field for field, headers in HEADERS.items() for header in headers.split()}
_IDS = ("id", "identifier", "key")  # Of the query or of the document: the other columns tell.
_DELIMITERS = "\t,;|"
_QUERIES = re.compile(r"quer|topic|question", re.IGNORECASE)  # In names of files.


@dataclass(frozen=True)
class Table:
    """How a file is a table. `fields`: what each column is, by its header."""

    delimiter: str
    header: tuple[str, ...]  # "column 1", "column 2", ... where the file has none.
    has_header: bool
    fields: dict[str, str]

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of the column of each field."""
        return {self.fields[name]: place for place, name in enumerate(self.header) if self.fields[name] in FIELDS}

    @property
    def kind(self) -> str:
        """What the table holds: documents, queries, pairs, qrels, or all of them in each row; "": none is clear."""
        has = self.places.keys()
        if {"query", "text"} <= has:
            return "all"
        if "text" in has:
            return "documents"
        if "query" in has:
            return "queries"
        if {"query_id", "doc_id"} <= has:
            return "qrels" if "grade" in has else "pairs"
        return ""


def about_queries(name: str) -> bool:
    """Whether the name of a file says that it holds queries."""
    return bool(_QUERIES.search(name.rpartition("/")[2]))


def read_table(source: FileSource) -> Table | None:
    """Return how the file is a table, or None for JSON, XML and a file of one column.

    Raises BadInput for a header that stands twice, and for two columns that are the same field.
    """
    number, line = source.first()
    if not number or line[:1] in b"{[<":
        return None
    text = source.decode(number, line)
    widths = {one: len(next(csv.reader([text], delimiter=one))) for one in _DELIMITERS}
    delimiter = max(_DELIMITERS, key=lambda one: widths[one])
    if widths[delimiter] < 2:
        return None
    cells = [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter))]
    has_header = not (delimiter == "\t" and _is_data(cells))
    header = tuple(cell if has_header and cell else f"column {n}" for n, cell in enumerate(cells, 1))
    if twice := next((name for place, name in enumerate(header) if name in header[:place]), ""):
        raise source.bad(number, _('two columns have the header "%(header)s"; rename one') % {"header": twice})
    fields = _choose_fields(source, header, cells if has_header else ())
    table = Table(delimiter, header, has_header, fields)
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
    begins, skip = 1, table.has_header
    try:
        for row in reader:
            line, begins = begins, last + 1
            if row and not skip:
                yield line, row
            skip = skip and not row
    except csv.Error as error:
        closed = "expected after" in str(error)
        problem = (
            _('text after a closing quote; write a quote inside a quoted text twice: ""')
            if closed
            else _('a quoted text that does not end; write a quote inside a quoted text twice: ""')
        )
        raise source.bad(begins, problem) from None


def _is_data(cells: list[str]) -> bool:
    """Whether the first line of a file is data already: an id of digits, and no header that is known."""
    known = any(_simplify(cell) in _FIELD_OF or _simplify(cell) in _IDS for cell in cells)
    return not known and len(cells) in (2, 4) and any(map(str.isdigit, cells[0])) and " " not in cells[0]


def _simplify(header: str) -> str:
    return re.sub(r"[^0-9a-z]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", header).lower()).strip("_")


def _choose_fields(source: FileSource, header: tuple[str, ...], cells: list[str] | tuple[str, ...]) -> dict[str, str]:
    """Return what each column is: as the user said, else as its header says, the first one of each field."""
    found = {name: source.fields[name] for name in header if name in source.fields}
    if wrong := next((value for value in found.values() if value not in EVERY_FIELD), ""):
        said = _('%(file)s: a column cannot be "%(field)s"; it can be %(fields)s')
        raise BadInput(said % {"file": source, "field": wrong, "fields": ", ".join(EVERY_FIELD)})
    guessed = _guess_fields(source.name, header) if cells else _guess_without_header(source.name, header)
    taken = set(found.values())
    for place, name in enumerate(header):
        if name in found:
            continue
        field = guessed.get(name, METADATA if not cells or cells[place] else IGNORED)
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
    # A file of queries may call their text simply "text".
    if "query" not in fields and "text" in fields and about_queries(file) and not fields & {"title", "doc_id"}:
        found = {name: "query" if field == "text" else field for name, field in found.items()}
        fields = set(found.values())
    if ids := [name for name, one in simple.items() if one in _IDS and name not in found]:
        owner = "doc_id" if "text" in fields else "query_id" if "query" in fields else ""
        if owner and owner not in fields:
            found[ids[0]] = owner
    return found


def _guess_without_header(file: str, header: tuple[str, ...]) -> dict[str, str]:
    """Guess the columns of MS MARCO's files: id and text, or id, address, title and text."""
    if len(header) == 2:
        fields: tuple[str, ...] = ("query_id", "query") if about_queries(file) else ("doc_id", "text")
    else:
        fields = ("doc_id", METADATA, "title", "text")
    return dict(zip(header, fields, strict=True))
