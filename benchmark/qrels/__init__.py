"""Versions of a collection's qrels: the original, filled ones beside it, imported files, all labels (DESIGN 10)."""

from benchmark.qrels.comparing import Diff, Difference, diff_versions
from benchmark.qrels.importing import import_version
from benchmark.qrels.reading import load, load_named, load_rows, write_trec
from benchmark.qrels.versions import (
    content_hash,
    is_stale,
    labels_version,
    latest_version,
    original_version,
    store_version,
    version_numbered,
)

__all__ = [
    "Diff",
    "Difference",
    "content_hash",
    "diff_versions",
    "import_version",
    "is_stale",
    "labels_version",
    "latest_version",
    "load",
    "load_named",
    "load_rows",
    "original_version",
    "store_version",
    "version_numbered",
    "write_trec",
]
