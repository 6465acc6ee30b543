"""Objects of JSON or Parquet with other names than ours as the rows of a table, whose columns are their keys. Pure."""

import re
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from charts.translation import gettext_noop
from corpus.formats import parquet_rows
from corpus.formats.files import MAX_COLUMNS, PARQUET, FileSource, is_nearly_empty
from corpus.formats.json_objects import read_objects
from corpus.formats.tool_exports import FlatRow, flatten

LOOKED_AT = 1_000  # Objects whose keys are the columns.
OTHER = "other keys"  # The column of keys that come later, as JSON.
JUDGMENT = {"query_id", "doc_id", "assessor", "kind", "grade", "step"}  # Keys of our own judgments.jsonl.
_PAIR = {"query_id", "doc_id"}
# The prompt of the exports for TRL (annotation.exports.sets.shapes), in which query and document stand.
_PROMPT = re.compile(
    r"Is the document relevant to the query\? .*?\n\nWhat relevant means here: (?P<instruction>.*?)"
    r"\nQuery: (?P<query>.*?)\nDocument: (?P<text>.*)\n\nAnswer:\n?\Z",
    re.DOTALL,
)
_COMPLETION = re.compile(r"(yes|no)(?:\n|\Z)")
_ERANK = {"query_id", "doc_id", "chain", "completion", "positive", "score"}
HIGHEST = 10  # Of ERank's scores.
# Exports that are not read back, by the keys that all of their lines have.
_NOT_READ = (
    ({"query_id", "doc_id", "grade", "start", "end"}, gettext_noop("marked evidence; import judgments.jsonl")),
    ({"query_id", "doc_id", "round", "side", "verdict"}, gettext_noop("debates; import judgments.jsonl")),
    ({"query_id", "aspect_id", "importance"}, gettext_noop("aspects; the command aspects reads them")),
    ({"file", "line", "synthetic"}, gettext_noop("the lines with a query that a model wrote")),
    ({"format", "files", "options"}, gettext_noop("the manifest of an export; import the files beside it")),
)


def is_ours(row: dict[str, Any]) -> bool:
    """Return whether an object is a text, a pair or a judgment of Quorum's own formats, whose keys need no mapping."""
    keys = row.keys()
    is_pair = _PAIR <= keys <= _PAIR | {"teacher_score", "gold"}
    return bool({"_id", "text"} <= keys or keys >= JUDGMENT or is_pair)


def read_columns(source: FileSource) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the columns of a JSON file, and those of them that people filled, in an export of a tool.

    None for a file with our own keys, and for one whose objects are no rows. Of Parquet: None for a
    file whose rows hold no judgments of several people. Raises BadInput for what is no JSON.
    """
    header: dict[str, None] = {}
    answers: dict[str, None] = {}
    for place, (line, row) in enumerate(_objects(source)):
        if not place and (flatten(row) is None if source.form == PARQUET else is_ours(row)):
            return None
        if not place and (name := next((name for keys, name in _NOT_READ if keys <= row.keys()), "")):
            said = _("this is an export of this site that is not imported here: %(name)s")
            raise source.bad(line, said % {"name": _(name)})
        if place == LOOKED_AT:
            header[OTHER] = None
            break
        for one in _flat_rows(row):
            header.update(dict.fromkeys(one.values))
            answers.update(dict.fromkeys(one.answers))
        if len(header) > MAX_COLUMNS:
            break  # of which the table will tell
    return (tuple(header), tuple(answers)) if header else None


def read_rows(source: FileSource, header: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line where the object begins, cells) of each row."""
    known = set(header)
    made = filled = 0
    for line, row in _objects(source):
        for one in _flat_rows(row):
            values = one.values
            if OTHER in known and (others := {name: value for name, value in values.items() if name not in known}):
                values = {**values, OTHER: others}
            made, filled = made + len(header), filled + len(values)
            if is_nearly_empty(filled, made):
                raise source.bad(line, _("nearly every object has other keys than the ones before; is it a table?"))
            yield line, parquet_rows.read_cells(source, line, values, header)


def _objects(source: FileSource) -> Iterator[tuple[int, dict[str, Any]]]:
    return parquet_rows.read_objects(source) if source.form == PARQUET else read_objects(source)


def _flat_rows(row: dict[str, Any]) -> list[FlatRow]:
    return flatten(row) or [FlatRow(read_line(row), ())]


def read_line(row: dict[str, Any]) -> dict[str, Any]:
    """Return an object with query, document and grade by their names, where it is TRL's or ERank's; else as it is."""
    if row.keys() >= _ERANK and isinstance(row["positive"], bool):
        score = row["score"] / HIGHEST if isinstance(row["score"], int | float) else row["score"]
        rest = {name: value for name, value in row.items() if name not in ("positive", "score")}
        return {**rest, "grade": row["positive"], "score": score}
    if row.keys() == {"prompt", "completion"} and isinstance(row["prompt"], str):
        prompt, answer = _PROMPT.match(row["prompt"]), _COMPLETION.match(str(row["completion"]))
        if prompt and answer:
            return {**prompt.groupdict(), "grade": answer[1], "completion": row["completion"]}
    return row
