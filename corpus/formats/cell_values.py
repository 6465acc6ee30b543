"""Values of Parquet, workbooks and JSON as the cells of a table, which are texts. Pure."""

import ast
import json
import re
from contextlib import suppress
from typing import Any

_PYTHON = re.compile(r"(?:\[[\[{]*|\{)\s*(?:['\"]|None|True|False|-?\d)[^\x00]*[\]}]\s*\Z")
_ARRAY = re.compile(r"\barray\((\[[^\[\]]*\])(?:, dtype=\w+)?\)")
_LONGEST = 1 << 20  # Characters of a list or an object that Python wrote.


class StructuredCell(str):
    """A list or object of Parquet or JSON, as JSON: never a text, though written so."""

    __slots__ = ()


def as_cell(value: Any) -> str:
    """Return a value as a text, a list or an object as JSON. Raises ValueError for bytes that are not UTF-8."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    # Not by str(), which writes True: grades in words and JSON are in small letters.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | dict):
        return StructuredCell(json.dumps(value, ensure_ascii=False, default=as_cell))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def parse_cell(cell: str) -> Any:
    """Return the list or the object that a cell holds as JSON or as Python writes it; of another cell, its text."""
    if cell[:1] not in ("[", "{"):
        return cell
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        # pandas writes single quotes, None and True.
        value = None
        if _PYTHON.match(cell) and len(cell) <= _LONGEST:
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = ast.literal_eval(_ARRAY.sub(r"\1", cell))
    return value if isinstance(value, list | dict) else cell
