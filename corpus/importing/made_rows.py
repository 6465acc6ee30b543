"""Import of rows that a program made, with the same checks, ids and search index as for files."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Collection


def import_rows(collection: Collection, **rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Import rows of `corpus`, `queries` and `pairs`; return the numbers of new rows."""
    files: dict[str, Any] = {}
    with TemporaryDirectory() as folder:
        for name, lines in rows.items():
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            if text:
                files[name] = Path(folder) / f"{name}.jsonl"
                files[name].write_text(text, encoding="utf-8")
        new: dict[str, int] = import_collection(collection.name, ImportFiles(**files))["new"]
    return new
