"""The aspects file: JSON lines of FIELDS. Lines of reviewed queries also have `review`, which is not imported."""

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
# The newest review of the query: accepted, changed or outdated; both persons' importances, null for a new aspect.
REVIEW = ("status", "first_importance", "second_importance")
SHOWN = 20  # Bad lines in an error.


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


LineProblems = list[tuple[int, str]]  # (line, problem).


def aspect_line(values: Sequence[Any]) -> str:
    """Return the values of FIELDS, then of REVIEW, as a line of the file."""
    line = dict(zip(FIELDS, values[: len(FIELDS)], strict=True))
    review = dict(zip(REVIEW, values[len(FIELDS) :], strict=True))
    if review["status"]:
        line["review"] = review
    return json.dumps(line, ensure_ascii=False) + "\n"


def read_aspects(path: Path) -> list[AspectRow]:
    """Return every line of the file. Raises BadInput that lists the bad lines by number."""
    source = FileSource(path)
    rows, problems = parse_aspects(source)
    refuse_bad_lines(source, problems)
    return rows


def parse_aspects(source: FileSource) -> tuple[list[AspectRow], LineProblems]:
    """Return the rows and the problems. Raises BadInput for a file that is empty or damaged, or contains NUL."""
    rows: list[AspectRow] = []
    problems: LineProblems = []
    first_lines: dict[tuple[str, str], int] = {}
    sizes: dict[str, int] = {}
    for number, line in source.lines():
        try:
            row = _parse_row(source, number, json_object(source, number, line))
        except BadInput as problem:
            # On the first line of another tool's file, its format is the better explanation.
            if not rows and not problems and (foreign_format := source.foreign()):
                raise BadInput(f"{source}: {foreign_format}") from None
            problems.append((number, str(problem).removeprefix(f"{source}, line {number}: ")))
            continue
        first_line = first_lines.setdefault((row.query, row.aspect), number)
        sizes[row.query] = sizes.get(row.query, 0) + 1
        if first_line != number:
            problems.append((number, f'aspect "{row.aspect}" of query "{row.query}" is already in line {first_line}'))
        elif sizes[row.query] > MOST:
            problems.append((number, f'query "{row.query}" has more than {MOST} aspects'))
        rows.append(row)
    if not rows and not problems:
        raise BadInput(f"{source}: the file contains no aspects")
    return rows, problems


def refuse_bad_lines(source: FileSource, problems: LineProblems) -> None:
    """Raise BadInput when there are problems: the first ones by line, and their number."""
    if not problems:
        return
    listed_problems = "; ".join(f"line {number}: {problem}" for number, problem in sorted(problems)[:SHOWN])
    more = f" (the first {SHOWN} of {len(problems)})" if len(problems) > SHOWN else ""
    count = "1 bad line" if len(problems) == 1 else f"{len(problems)} bad lines"
    raise BadInput(f"{source}: {count}: {listed_problems}{more}")


def by_query(rows: Iterable[AspectRow]) -> dict[str, list[AspectRow]]:
    """Group rows by query, with queries and rows in the order of the file."""
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
    ids = tuple(source.identifier(number, document, "doc_ids") for document in documents)
    if len(set(ids)) < len(ids):
        raise source.bad(number, '"doc_ids" lists a document twice')
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
        raise source.bad(number, f'"{field}" contains a NUL character; remove it')
    return value.strip()  # So that an export equals its import.
