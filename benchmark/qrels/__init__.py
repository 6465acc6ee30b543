"""Versions of a collection's qrels: the original, filled ones beside it, imported files, all labels (DESIGN 10)."""

from benchmark.qrels.comparing import Diff, Difference, diff
from benchmark.qrels.importing import import_version
from benchmark.qrels.reading import Grades, load, load_rows, named, write_trec
from benchmark.qrels.versions import content_hash, is_stale, labels, latest, original, store, version_numbered

__all__ = [
    "Diff",
    "Difference",
    "Grades",
    "content_hash",
    "diff",
    "import_version",
    "is_stale",
    "labels",
    "latest",
    "load",
    "load_rows",
    "named",
    "original",
    "store",
    "version_numbered",
    "write_trec",
]
