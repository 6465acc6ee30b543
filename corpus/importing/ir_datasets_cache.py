"""Collections of the optional package ir_datasets, read from its cache on this disk without any download."""

import importlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from corpus.errors import BadInput

# A proxy that does not exist, and no retries, so that the package cannot use the network.
_CLOSED = "http://127.0.0.1:9"
_OFFLINE = {name: _CLOSED for name in ("http_proxy", "https_proxy", "all_proxy")} | {
    "no_proxy": "", "NO_PROXY": "", "IR_DATASETS_DL_TRIES": "1", "IR_DATASETS_DL_403_TRIES": "1", "HF_HUB_OFFLINE": "1",
}  # fmt: skip
_TEXTS = ("text", "body", "contents", "abstract", "query", "title")  # The first of these fields is the text.


def write_files(name: str, folder: Path) -> list[Path]:
    """Write a collection's documents, queries and qrels as files; return them. Raises BadInput if one is missing."""
    try:
        package = importlib.import_module("ir_datasets")
    except ImportError:
        message = _('"%(name)s": the Python package ir_datasets is not installed; pip install ir_datasets')
        raise BadInput(message % {"name": name}) from None
    try:
        dataset = package.load(name)
    except KeyError:
        raise BadInput(_('ir_datasets has no collection "%(name)s"') % {"name": name}) from None
    paths = []
    try:
        with _without_network():
            if dataset.has_docs():
                lines = (_text_line(row, row.doc_id) for row in dataset.docs_iter())
                paths.append(_write_lines(folder / "corpus.jsonl", lines))
            if dataset.has_queries():
                lines = (_text_line(row, row.query_id) for row in dataset.queries_iter())
                paths.append(_write_lines(folder / "queries.jsonl", lines))
            if dataset.has_qrels():
                lines = (f"{row.query_id} 0 {row.doc_id} {row.relevance}\n" for row in dataset.qrels_iter())
                paths.append(_write_lines(folder / "qrels.txt", lines))
    except ImportError as error:
        raise BadInput(f"ir_datasets: {' '.join(str(error).split())}") from None
    except (OSError, RuntimeError):
        message = _(
            'ir_datasets has not all files of "%(name)s" on this disk; where it may download them, run: '
            "ir_datasets export %(name)s docs (and queries, and qrels)"
        )
        raise BadInput(message % {"name": name}) from None
    return paths


def _write_lines(path: Path, lines: Iterable[str]) -> Path:
    iterator = iter(lines)
    with path.open("w", encoding="utf-8") as file:
        while batch := list(islice(iterator, 1_000)):
            file.writelines(batch)
    return path


def _text_line(row: Any, name: str) -> str:
    """Return a document or query as a JSON line, with its other fields as metadata."""
    fields = row._asdict()
    text_field = next((field for field in _TEXTS if isinstance(fields.get(field), str)), "")
    text = fields.pop(text_field) if text_field else row.default_text()
    title = fields.pop("title", "")
    metadata = {key: value for key, value in fields.items() if isinstance(value, str) and value and value != name}
    line = {
        "_id": name,
        "title": title.strip() if isinstance(title, str) else "",
        "text": text.strip(),
        "metadata": metadata,
    }
    return json.dumps(line, ensure_ascii=False) + "\n"


@contextmanager
def _without_network() -> Iterator[None]:
    """Keep the package from using the network, by the environment variables that its downloads respect."""
    before = {name: os.environ.get(name) for name in _OFFLINE}
    os.environ.update(_OFFLINE)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
