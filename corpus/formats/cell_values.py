"""Values of Parquet, workbooks and JSON as the cells of a table, which are texts. Pure."""

import json
from typing import Any


def as_cell(value: Any) -> str:
    """Return a value as a text: none as "", a list or an object as JSON, a date as 2026-11-26T09:30:00.

    Raises ValueError for bytes that are not UTF-8.
    """
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
        return json.dumps(value, ensure_ascii=False, default=as_cell)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def as_texts(cell: str) -> list[str]:
    """Return the texts of a cell that holds a JSON list of them; of another cell, itself."""
    if cell[:1] != "[":
        return [cell] if cell else []
    try:
        found = json.loads(cell)
    except ValueError:
        return [cell]
    return found if isinstance(found, list) and all(isinstance(one, str) for one in found) else [cell]


def as_metadata(cell: str) -> dict[str, Any]:
    """Return the object that a cell holds as JSON; {} for another cell."""
    if cell[:1] != "{":
        return {}
    try:
        found = json.loads(cell)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
