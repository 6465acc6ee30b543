"""Versions of the qrels and stored runs, read from the benchmark's tables, which this app shares by SQL alone."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils.translation import gettext as _

from corpus.errors import BadOption
from corpus.models import Collection
from store.sql import fetch_rows

VERSIONS = """
    SELECT number, kind, note, content_hash, counts FROM benchmark_qrels WHERE collection_id = %(collection)s
    ORDER BY number
"""
NAMES = "SELECT name FROM benchmark_run WHERE collection_id = %(collection)s AND NOT is_deleted ORDER BY id DESC"
# In the order of a query's ranking, which is trec_eval's.
LINES = """
SELECT q.external_id, d.external_id, ranked.score, ranked.place
FROM benchmark_run r JOIN benchmark_ranking b ON b.run_id = r.id JOIN corpus_query q ON q.id = b.query_id
CROSS JOIN LATERAL unnest(b.documents, b.scores) WITH ORDINALITY AS ranked(document, score, place)
JOIN corpus_document d ON d.id = ranked.document
WHERE r.collection_id = %s AND r.name = %s AND NOT r.is_deleted ORDER BY q.external_id, ranked.place
"""


def find_version(collection: Collection, number: int) -> dict[str, Any]:
    """Return what the manifest says of a qrels version. BadInput names the others."""
    versions = {version["number"]: version for version in list_versions(collection)}
    if number not in versions:
        names = ", ".join(map(str, list(versions)[:20])) or _("none yet")
        words = _("%(collection)s has no qrels version %(number)s; there are: %(names)s.")
        raise BadOption("qrels", words % {"collection": collection.name, "number": number, "names": names})
    return versions[number]


def list_versions(collection: Collection) -> list[dict[str, Any]]:
    """Return the versions of the qrels, the oldest first: number, kind, note, sha256 and how many pairs are judged."""
    versions = []
    for number, kind, note, digest, counts in fetch_rows(VERSIONS, collection=collection.pk):
        # A cursor of Django's gives JSON as text.
        read = json.loads(counts) if isinstance(counts, str) else counts
        version = {"number": number, "kind": kind, "note": note, "sha256": digest}
        versions.append({**version, "judged": int(read.get("judged", 0))})
    return versions


@contextmanager
def run_file(collection: Collection, written: str) -> Iterator[str]:
    """Yield the path of a run: a file as it was written, or a stored run of that name as a file while this lasts.

    Raises BadInput where there is neither.
    """
    if Path(written).exists():
        yield written
        return
    names = [name for (name,) in fetch_rows(NAMES, collection=collection.pk)]
    if written not in names:
        words = _("%(run)s is neither a file nor a stored run of %(collection)s; stored runs are: %(names)s.")
        known = ", ".join(names[:10]) or _("none yet")
        raise BadOption("run", words % {"run": written, "collection": collection.name, "names": known})
    with TemporaryDirectory(dir=settings.VAR) as folder:
        path = Path(folder) / f"{written}.run"
        with path.open("w", encoding="utf-8") as file, connection.cursor() as cursor:
            cursor.execute(LINES, [collection.pk, written])
            for query, document, score, place in cursor:
                file.write(f"{query} Q0 {document} {place} {score!r} {written}\n")
        yield str(path)
