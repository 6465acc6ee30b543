"""Stored runs as an export reads them: rows of the benchmark's tables, which this app shares by SQL alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from django.conf import settings
from django.db import connection

from corpus.errors import BadInput
from corpus.models import Collection

NAMES = "SELECT name FROM benchmark_run WHERE collection_id = %s AND NOT is_deleted ORDER BY id DESC"
# In the order of a query's ranking, which is trec_eval's.
LINES = """
SELECT q.external_id, d.external_id, ranked.score, ranked.place
FROM benchmark_run r JOIN benchmark_ranking b ON b.run_id = r.id JOIN corpus_query q ON q.id = b.query_id
CROSS JOIN LATERAL unnest(b.documents, b.scores) WITH ORDINALITY AS ranked(document, score, place)
JOIN corpus_document d ON d.id = ranked.document
WHERE r.collection_id = %s AND r.name = %s AND NOT r.is_deleted ORDER BY q.external_id, ranked.place
"""


@contextmanager
def run_file(collection: Collection, written: str) -> Iterator[str]:
    """Yield the path of a run: a file as it was written, or a stored run of that name as a file while this lasts.

    Raises BadInput where there is neither.
    """
    with connection.cursor() as cursor:
        cursor.execute(NAMES, [collection.pk])
        names = [name for (name,) in cursor.fetchall()]
    if Path(written).exists():
        yield written
        return
    if written not in names:
        known = f"; stored runs are {', '.join(names[:10])}" if names else ""
        raise BadInput(f"{written} is neither a file nor a stored run of {collection.name}{known}")
    with TemporaryDirectory(dir=settings.VAR) as folder:
        path = Path(folder) / f"{written}.run"
        with path.open("w", encoding="utf-8") as file, connection.cursor() as cursor:
            cursor.execute(LINES, [collection.pk, written])
            for query, document, score, place in cursor:
                file.write(f"{query} Q0 {document} {place} {score!r} {written}\n")
        yield str(path)
