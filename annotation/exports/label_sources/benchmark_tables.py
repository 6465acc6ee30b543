"""Reader of the benchmark's qrels versions, runs and search endpoints, by SQL: the app may not import the benchmark."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils.translation import gettext as _

from annotation.exports.ratings.requests import KINDS
from corpus.errors import BadOption
from corpus.models import Collection
from store.sql import fetch_rows

LIST_VERSIONS = """
    SELECT number, kind, note, content_hash, counts FROM benchmark_qrels WHERE collection_id = %(collection)s
    ORDER BY number
"""
LIST_RUNS = "SELECT name FROM benchmark_run WHERE collection_id = %(collection)s AND NOT is_deleted ORDER BY id DESC"
LIST_ENDPOINTS = "SELECT name, kind, settings FROM benchmark_searchendpoint WHERE NOT is_deleted ORDER BY name"
# In the order of each ranking, which is trec_eval's.
READ_RUN = """
SELECT q.external_id, d.external_id, ranked.score, ranked.place
FROM benchmark_run r JOIN benchmark_ranking b ON b.run_id = r.id JOIN corpus_query q ON q.id = b.query_id
CROSS JOIN LATERAL unnest(b.documents, b.scores) WITH ORDINALITY AS ranked(document, score, place)
JOIN corpus_document d ON d.id = ranked.document
WHERE r.collection_id = %s AND r.name = %s AND NOT r.is_deleted ORDER BY q.external_id, ranked.place
"""


def find_version(collection: Collection, number: int) -> dict[str, Any]:
    """Return the description of a qrels version for the manifest. Raises BadOption for an unknown number."""
    versions = {version["number"]: version for version in list_versions(collection)}
    if number not in versions:
        names = ", ".join(map(str, list(versions)[:20])) or _("none yet")
        words = _("%(collection)s has no qrels version %(number)s; there are: %(names)s.")
        raise BadOption("qrels", words % {"collection": collection.name, "number": number, "names": names})
    return versions[number]


def list_versions(collection: Collection) -> list[dict[str, Any]]:
    """Return the versions of the qrels, the oldest first: number, kind, note, sha256 and number of judged pairs."""
    versions = []
    for number, kind, note, digest, stored in fetch_rows(LIST_VERSIONS, collection=collection.pk):
        # Django's cursors return JSON as text.
        counts = json.loads(stored) if isinstance(stored, str) else stored
        version = {"number": number, "kind": kind, "note": note, "sha256": digest}
        versions.append({**version, "judged": int(counts.get("judged", 0))})
    return versions


@contextmanager
def run_file(collection: Collection, run: str) -> Iterator[str]:
    """Yield the path of a run. `run`: the path of a file, or the name of a stored run, written to a temporary file.

    Raises BadOption where it is neither.
    """
    if Path(run).exists():
        yield run
        return
    names = [name for (name,) in fetch_rows(LIST_RUNS, collection=collection.pk)]
    if run not in names:
        words = _("%(run)s is neither a file nor a stored run of %(collection)s; stored runs are: %(names)s.")
        stored_names = ", ".join(names[:10]) or _("none yet")
        raise BadOption("run", words % {"run": run, "collection": collection.name, "names": stored_names})
    with TemporaryDirectory(dir=settings.VAR) as folder:
        path = Path(folder) / f"{run}.run"
        with path.open("w", encoding="utf-8") as file, connection.cursor() as cursor:
            cursor.execute(READ_RUN, [collection.pk, run])
            for query, document, score, rank in cursor:
                file.write(f"{query} Q0 {document} {rank} {score!r} {run}\n")
        yield str(path)


def list_endpoints() -> dict[str, dict[str, Any]]:
    """Return the settings of the site's search endpoints that have _rank_eval, by name."""
    return {
        name: json.loads(stored) if isinstance(stored, str) else stored
        for name, kind, stored in fetch_rows(LIST_ENDPOINTS)
        if kind in KINDS
    }


def find_endpoint(name: str) -> dict[str, Any]:
    """Return the settings of a search endpoint. Raises BadOption for one that is unknown or has no _rank_eval."""
    endpoints = list_endpoints()
    if name not in endpoints:
        message = _("%(name)s is no search endpoint of OpenSearch or Elasticsearch; there are: %(names)s.")
        names = ", ".join(list(endpoints)[:10]) or _("none yet")
        raise BadOption("endpoint", message % {"name": name, "names": names})
    return endpoints[name]
