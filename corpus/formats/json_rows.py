"""Objects of JSON or Parquet with other keys than ours, as the rows of a table with their keys as columns. Pure."""

import re
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from charts.translation import gettext_noop
from corpus.formats import parquet_rows
from corpus.formats.files import MAX_COLUMNS, PARQUET, FileSource, is_nearly_empty
from corpus.formats.json_objects import read_objects
from corpus.formats.tool_exports import FlatRow, flatten

LOOKED_AT = 1_000  # Objects whose keys become columns.
OTHER = "other keys"  # The column for keys of later objects, as JSON.
JUDGMENT = {"query_id", "doc_id", "assessor", "kind", "grade", "step"}  # Keys of our own judgments.jsonl.
_PAIR = {"query_id", "doc_id"}
# The prompt of the exports for TRL (annotation.exports.sets.shapes), with query and document.
_PROMPT = re.compile(
    r"Is the document relevant to the query\? .*?\n\nWhat relevant means here: (?P<instruction>.*?)"
    r"\nQuery: (?P<query>.*?)\nDocument: (?P<text>.*)\n\nAnswer:\n?\Z",
    re.DOTALL,
)
_COMPLETION = re.compile(r"(yes|no)(?:\n|\Z)")
_ERANK = {"query_id", "doc_id", "chain", "completion", "positive", "score"}
HIGHEST = 10  # The highest score of ERank.
# Exports that cannot be imported, by the keys of all of their lines.
_NOT_READ = (
    ({"query_id", "doc_id", "grade", "start", "end"}, gettext_noop("marked evidence; import judgments.jsonl")),
    ({"query_id", "doc_id", "round", "side", "verdict"}, gettext_noop("debates; import judgments.jsonl")),
    ({"query_id", "aspect_id", "importance"}, gettext_noop("aspects; the command aspects reads them")),
    ({"file", "line", "synthetic"}, gettext_noop("the lines with a query that a model wrote")),
    ({"format", "files", "options"}, gettext_noop("the manifest of an export; import the files beside it")),
)


def is_ours(row: dict[str, Any]) -> bool:
    """Return whether an object is a text, a pair or a judgment in Quorum's own formats, which need no mapping."""
    keys = row.keys()
    is_pair = _PAIR <= keys <= _PAIR | {"teacher_score", "gold"}
    return bool({"_id", "text"} <= keys or keys >= JUDGMENT or is_pair)


def read_columns(source: FileSource) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the columns of a JSON file, and which of them people filled, if it is an export of a tool.

    None for a file with our own keys, and for a file without objects. For Parquet: None for rows
    without judgments of several people. Raises BadInput for invalid JSON.
    """
    header: dict[str, None] = {}
    answers: dict[str, None] = {}
    for index, (line, row) in enumerate(_objects(source)):
        if not index and (flatten(row) is None if source.form == PARQUET else is_ours(row)):
            return None
        if not index and (name := next((name for keys, name in _NOT_READ if keys <= row.keys()), "")):
            message = _("this is an export of this site that is not imported here: %(name)s")
            raise source.bad(line, message % {"name": _(name)})
        if index == LOOKED_AT:
            header[OTHER] = None
            break
        for flat_row in _flat_rows(row):
            header.update(dict.fromkeys(flat_row.values))
            answers.update(dict.fromkeys(flat_row.answers))
        if len(header) > MAX_COLUMNS:
            break  # The reader of the table will report it.
    return (tuple(header), tuple(answers)) if header else None


def read_rows(source: FileSource, header: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Yield (first line of the object, cells) of each row."""
    known_names = set(header)
    cell_count = filled_count = 0
    for line, row in _objects(source):
        for flat_row in _flat_rows(row):
            values = flat_row.values
            if OTHER in known_names and (
                later_values := {name: value for name, value in values.items() if name not in known_names}
            ):
                values = {**values, OTHER: later_values}
            cell_count, filled_count = cell_count + len(header), filled_count + len(values)
            if is_nearly_empty(filled_count, cell_count):
                raise source.bad(line, _("nearly every object has other keys than the ones before; is it a table?"))
            yield line, parquet_rows.read_cells(source, line, values, header)


def _objects(source: FileSource) -> Iterator[tuple[int, dict[str, Any]]]:
    return parquet_rows.read_objects(source) if source.form == PARQUET else read_objects(source)


def _flat_rows(row: dict[str, Any]) -> list[FlatRow]:
    return flatten(row) or [FlatRow(read_line(row), ())]


def read_line(row: dict[str, Any]) -> dict[str, Any]:
    """Return an object of TRL or ERank with query, document and grade as keys; other objects unchanged."""
    if row.keys() >= _ERANK and isinstance(row["positive"], bool):
        score = row["score"] / HIGHEST if isinstance(row["score"], int | float) else row["score"]
        rest = {name: value for name, value in row.items() if name not in ("positive", "score")}
        return {**rest, "grade": row["positive"], "score": score}
    if row.keys() == {"prompt", "completion"} and isinstance(row["prompt"], str):
        prompt, answer = _PROMPT.match(row["prompt"]), _COMPLETION.match(str(row["completion"]))
        if prompt and answer:
            return {**prompt.groupdict(), "grade": answer[1], "completion": row["completion"]}
    return row
