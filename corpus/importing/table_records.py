"""Documents, queries and pairs from the rows of a table, and the records that they are. Pure."""

import json
import math
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from django.utils.translation import gettext as _

from corpus.importing.files import FileSource
from corpus.importing.tables import METADATA, Table, read_rows, require_fields

_WHOLE = re.compile(r"([+-]?\d{1,9})(?:\.0+)?\Z")  # Where a value is missing, programs write the others as 1.0.


class TextRecord(NamedTuple):
    """A document or a query as it enters. `metadata` and `answers` are JSON texts."""

    line: int
    id: str
    title: str
    text: str
    metadata: str
    hash: str
    answers: str = "[]"
    instruction: str = ""


class CandidateRecord(NamedTuple):
    """A line of --pairs."""

    line: int
    query: str
    document: str
    teacher_score: float | None
    gold: int | None


def content_hash(*parts: str) -> str:
    """Return the sha256, in hex, of all that a reader sees. NUL is in no part, so other parts never join alike."""
    return sha256("\0".join(parts).encode()).hexdigest()


def read_documents(source: FileSource, table: Table) -> Iterator[TextRecord]:
    """Yield the documents of a table; one without a column of ids gets them from the text."""
    require_fields(source, table, ("text",))
    seen: dict[str, tuple[int, str]] = {}
    for line, row in read_rows(source, table):
        title, text = _cell(table, row, "title"), _cell(table, row, "text")
        name = _document_id(source, table, line, row)
        record = TextRecord(line, name, title, text, _metadata(table, row), content_hash(title, text))
        if not _is_repeated(source, table, record, seen, "doc_id"):
            yield record


def read_queries(source: FileSource, table: Table) -> Iterator[TextRecord]:
    """Yield the queries of a table; one without a column of ids gets them from the text."""
    require_fields(source, table, ("query",))
    seen: dict[str, tuple[int, str]] = {}
    for line, row in read_rows(source, table):
        text, instruction = _cell(table, row, "query"), _cell(table, row, "instruction")
        # One answer a line: a cell has no other mark that no answer could hold.
        answers = [one.strip() for one in _cell(table, row, "answers").split("\n") if one.strip()]
        record = TextRecord(
            line, _query_id(source, table, line, row), "", text, _metadata(table, row),
            content_hash(text, instruction, *answers), json.dumps(answers, ensure_ascii=False), instruction,
        )  # fmt: skip
        if not _is_repeated(source, table, record, seen, "query_id"):
            yield record


def read_pairs(source: FileSource, table: Table, top: int) -> Iterator[CandidateRecord]:
    """Yield the pairs of a table, with grades up to `top` and scores where it has them."""
    for name, text in (("query_id", "query"), ("doc_id", "text")):
        if text not in table.places:
            require_fields(source, table, (name,))
    for line, row in read_rows(source, table):
        query, document = _query_id(source, table, line, row), _document_id(source, table, line, row)
        score, grade = _cell(table, row, "score").strip(), _cell(table, row, "grade").strip()
        yield CandidateRecord(
            line, query, document, _read_score(source, line, score), _read_grade(source, line, grade, top)
        )


def _cell(table: Table, row: list[str], field: str) -> str:
    place = table.places.get(field)
    return "" if place is None else row[place]


def _document_id(source: FileSource, table: Table, line: int, row: list[str]) -> str:
    if "doc_id" in table.places:
        return source.identifier(line, _cell(table, row, "doc_id").strip(), "doc_id")
    return content_hash(_cell(table, row, "title"), _cell(table, row, "text"))[:16]


def _query_id(source: FileSource, table: Table, line: int, row: list[str]) -> str:
    if "query_id" in table.places:
        return source.identifier(line, _cell(table, row, "query_id").strip(), "query_id")
    return content_hash(_cell(table, row, "query"))[:16]


def _is_repeated(
    source: FileSource, table: Table, record: TextRecord, seen: dict[str, tuple[int, str]], id_field: str
) -> bool:
    """Whether an earlier row said the same of this id. Raises BadInput where it said something else."""
    # Rows repeat a text where each is a pair, or where the text is its own id; elsewhere the importer finds it.
    if table.kind != "all" and id_field in table.places:
        return False
    line, before = seen.setdefault(record.id, (record.line, record.hash))
    if before != record.hash:
        said = _('"%(id)s" has another text than in line %(other)s')
        raise source.bad(record.line, said % {"id": record.id, "other": line})
    return line != record.line


def _metadata(table: Table, row: list[str]) -> str:
    """Return the other columns as JSON; of a row that holds a pair nobody knows whose they are."""
    if table.kind == "all":
        return "{}"
    kept = {name: row[n] for n, name in enumerate(table.header) if table.fields[name] == METADATA and row[n]}
    return json.dumps(kept, ensure_ascii=False)


def _read_score(source: FileSource, line: int, text: str) -> float | None:
    if not text:
        return None
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise source.bad(line, _("the score is not a finite number: %(value)r") % {"value": text[:40]})
    return score


def _read_grade(source: FileSource, line: int, text: str, top: int) -> int | None:
    if not text:
        return None
    found = _WHOLE.match(text)
    if not found:
        raise source.bad(line, _("the grade is not an integer: %(value)r") % {"value": text[:40]})
    if int(found[1]) > top:
        said = _("grade %(grade)s is above the highest grade %(top)s")
        raise source.bad(line, said % {"grade": int(found[1]), "top": top})
    return int(found[1])
