"""The aspects file: JSON lines of FIELDS; those of reviewed queries have `review`, which is not read."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.aspects.entries import ANCHORS, MOST
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.formats.json_objects import json_object

FIELDS = ("query_id", "aspect_id", "text", "rationale", "importance", "doc_ids")
# Of the newest review of the query: accepted, changed or outdated; both persons' importances, null for a new aspect.
REVIEW = ("status", "first_importance", "second_importance")
SHOWN = 20  # Bad lines that the error names.


@dataclass(frozen=True, slots=True)
class AspectRow:
    """A line of an aspects file: an aspect of a query and the documents that support it."""

    line: int
    query: str
    aspect: str
    text: str
    rationale: str
    importance: int
    documents: tuple[str, ...]


Bad = list[tuple[int, str]]  # (line, what is wrong with it).


def aspect_line(values: Sequence[Any]) -> str:
    """Return the values of FIELDS, then of REVIEW, as a line of the file."""
    line = dict(zip(FIELDS, values[: len(FIELDS)], strict=True))
    review = dict(zip(REVIEW, values[len(FIELDS) :], strict=True))
    if review["status"]:
        line["review"] = review
    return json.dumps(line, ensure_ascii=False) + "\n"


def read_aspects(path: Path) -> list[AspectRow]:
    """Return every line of the file. Raises BadInput that names the bad ones by number."""
    source = FileSource(path)
    rows, bad = parse_aspects(source)
    refuse_bad_lines(source, bad)
    return rows


def parse_aspects(source: FileSource) -> tuple[list[AspectRow], Bad]:
    """Return the good lines and the bad ones. Raises BadInput for a file that is empty or damaged, or holds NUL."""
    rows: list[AspectRow] = []
    bad: Bad = []
    first: dict[tuple[str, str], int] = {}
    sizes: dict[str, int] = {}
    for number, given in source.lines():
        try:
            row = _parse_row(source, number, json_object(source, number, given))
        except BadInput as problem:
            # The first line of another tool's file: what the file is says more than what is wrong with the line.
            if not rows and not bad and (known := source.foreign()):
                raise BadInput(f"{source}: {known}") from None
            bad.append((number, str(problem).removeprefix(f"{source}, line {number}: ")))
            continue
        before = first.setdefault((row.query, row.aspect), number)
        sizes[row.query] = sizes.get(row.query, 0) + 1
        if before != number:
            bad.append((number, f'aspect "{row.aspect}" of query "{row.query}" stands already in line {before}'))
        elif sizes[row.query] > MOST:
            bad.append((number, f'query "{row.query}" has more than {MOST} aspects'))
        rows.append(row)
    if not rows and not bad:
        raise BadInput(f"{source}: the file holds no aspect")
    return rows, bad


def refuse_bad_lines(source: FileSource, bad: Bad) -> None:
    """Raise BadInput when there is a bad line: the first ones by number, and how many there are."""
    if not bad:
        return
    named = "; ".join(f"line {number}: {problem}" for number, problem in sorted(bad)[:SHOWN])
    more = f" (the first {SHOWN} of {len(bad)})" if len(bad) > SHOWN else ""
    count = "1 bad line" if len(bad) == 1 else f"{len(bad)} bad lines"
    raise BadInput(f"{source}: {count}: {named}{more}")


def by_query(rows: Iterable[AspectRow]) -> dict[str, list[AspectRow]]:
    """Return the rows of each query together, queries and rows in the order of the file."""
    grouped: dict[str, list[AspectRow]] = {}
    for row in rows:
        grouped.setdefault(row.query, []).append(row)
    return grouped


def _parse_row(source: FileSource, number: int, row: dict[str, Any]) -> AspectRow:
    importance = row.get("importance")
    if isinstance(importance, bool) or importance not in ANCHORS:
        raise source.bad(number, f'"importance" is not one of 1, 2, 3, 4, 5: {importance!r}')
    documents = row.get("doc_ids", [])
    if not isinstance(documents, list):
        raise source.bad(number, '"doc_ids" is not a list')
    ids = tuple(source.identifier(number, one, "doc_ids") for one in documents)
    if len(set(ids)) < len(ids):
        raise source.bad(number, '"doc_ids" names a document twice')
    text = _text_field(source, number, row, "text")
    if not text:
        raise source.bad(number, '"text" is empty')
    query, aspect = (source.identifier(number, row.get(field), field) for field in ("query_id", "aspect_id"))
    return AspectRow(number, query, aspect, text, _text_field(source, number, row, "rationale"), int(importance), ids)


def _text_field(source: FileSource, number: int, row: dict[str, Any], field: str) -> str:
    value = row.get(field, "")
    if not isinstance(value, str):
        raise source.bad(number, f'"{field}" is not a string')
    if "\0" in value:
        raise source.bad(number, f'"{field}" holds a NUL character; remove it')
    return value.strip()  # so that what is exported is what was imported
