"""Conversion between values of Parquet, workbooks and JSON and the cells of a table, which are texts. Pure."""

import ast
import json
import re
from contextlib import suppress
from typing import Any

_PYTHON = re.compile(r"(?:\[[\[{]*|\{)\s*(?:['\"]|None|True|False|-?\d)[^\x00]*[\]}]\s*\Z")
_ARRAY = re.compile(r"\barray\((\[[^\[\]]*\])(?:, dtype=\w+)?\)")
_LONGEST = 1 << 20  # The most characters of a list or an object in Python's notation.


class StructuredCell(str):
    """A list or an object from Parquet or JSON, as JSON text."""

    __slots__ = ()


def as_cell(value: Any) -> str:
    """Return a value as text, lists and objects as JSON. Raises ValueError for bytes that are not UTF-8."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    # Not str(), which returns True: grades in words and JSON are in lower case.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | dict):
        return StructuredCell(json.dumps(value, ensure_ascii=False, default=as_cell))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def parse_cell(cell: str) -> Any:
    """Return the list or the object in a cell, in JSON or Python notation; for other cells, the text."""
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
