"""Objects of JSON or Parquet with other names than ours as the rows of a table, whose columns are their keys. Pure."""

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from corpus.formats import own_exports, parquet_rows
from corpus.formats.files import MAX_COLUMNS, PARQUET, FileSource, is_nearly_empty
from corpus.formats.json_objects import read_objects
from corpus.formats.tool_exports import FlatRow, flatten

LOOKED_AT = 1_000  # Objects whose keys are the columns.
OTHER = "other keys"  # The column of keys that come later, as JSON.
JUDGMENT = {"query_id", "doc_id", "assessor", "kind", "grade", "step"}  # Keys of our own judgments.jsonl.
_PAIR = {"query_id", "doc_id"}


def is_ours(row: dict[str, Any]) -> bool:
    """Return whether an object is a text, a pair or a judgment of Quorum's own formats, whose keys need no mapping."""
    keys = row.keys()
    is_pair = _PAIR <= keys <= _PAIR | {"teacher_score", "gold"}
    return bool({"_id", "text"} <= keys or keys >= JUDGMENT or is_pair)


def read_columns(source: FileSource) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the columns of a JSON file, and those of them that people filled, in an export of a tool.

    None for a file with our own keys, and for one whose objects are no rows. Of Parquet: None for a file whose rows
    hold no judgments of several people. Raises BadInput for what is no JSON.
    """
    header: dict[str, None] = {}
    answers: dict[str, None] = {}
    for place, (line, row) in enumerate(_objects(source)):
        if not place and (flatten(row) is None if source.form == PARQUET else is_ours(row)):
            return None
        if not place and (problem := own_exports.find_unreadable(row)):
            raise source.bad(line, problem)
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
    return flatten(row) or [FlatRow(own_exports.read_line(row), ())]
