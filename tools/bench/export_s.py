"""export_s: seconds to export 10,000 and 1,000,000 labelled pairs as qrels, in the service."""

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from django.db import connection

from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from corpus.models import Collection

CASES = ((10_000, 100, 1_000, 0.2), (1_000_000, 10_000, 100_000, 15.0))

TABLES = (
    """
    INSERT INTO corpus_query (collection_id, external_id, version, is_current, text, metadata, content_hash, answers,
                              instruction)
    SELECT %(collection)s, 'q' || n, 1, true, 'A question.', '{}', md5('q' || n), '{}', ''
    FROM generate_series(1, %(queries)s) n
    """,
    """
    INSERT INTO corpus_document (collection_id, external_id, version, is_current, text, metadata, content_hash, title)
    SELECT %(collection)s, 'd' || n, 1, true, repeat('word ', 130), '{}', md5('d' || n), ''
    FROM generate_series(1, %(documents)s) n
    """,
    """
    INSERT INTO corpus_pair (collection_id, query_id, document_id, uncertainty)
    SELECT %(collection)s, q.id, d.id, 0
    FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM corpus_query WHERE collection_id = %(collection)s) q
    CROSS JOIN generate_series(0, 99) k
    JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM corpus_document
          WHERE collection_id = %(collection)s) d ON d.n = (q.n * 37 + k * 11) %% %(documents)s
    """,
    """
    INSERT INTO corpus_label (pair_id, grade, origin)
    SELECT id, id %% 2, 'debate+ensemble' FROM corpus_pair WHERE collection_id = %(collection)s
    """,
    "ANALYZE corpus_query, corpus_document, corpus_pair, corpus_label",
)


def measure() -> list[dict[str, Any]]:
    """Return the figures of both sizes as qrels and as CSV, with this machine's speed of parsing JSON."""
    figures = []
    for pairs, queries, documents, aim in CASES:
        collection = Collection.objects.create(name=f"bench-export-{pairs}", grades=1)
        values = {"collection": collection.pk, "queries": queries, "documents": documents}
        with connection.cursor() as cursor:
            for statement in TABLES:
                cursor.execute(statement, values)
        for name in ("qrels", "csv"):
            seconds = min(export(collection, name) for _ in range(2))
            figures.append(
                {
                    "name": "export_s",
                    "case": f"{pairs:,} labelled pairs, {name}",
                    "value": round(seconds, 3),
                    "unit": "s",
                    "aim": f"under {aim:g}",
                    "calibration": {"json_mb_per_s": json_speed()},
                }
            )
    return figures


def export(collection: Collection, name: str) -> float:
    """Return the seconds of one snapshot, from the row to the manifest."""
    folder = Path(tempfile.mkdtemp())
    try:
        started_at = time.perf_counter()
        write_snapshot(create_snapshot(collection, ExportOptions(format=name), folder / "out"))
        return time.perf_counter() - started_at
    finally:
        shutil.rmtree(folder)


def json_speed() -> int:
    """Return the MB/s at which this machine parses JSON."""
    text = json.dumps([{"query_id": f"q{n}", "doc_id": f"d{n}", "grade": 1} for n in range(50_000)])
    started = time.perf_counter()
    json.loads(text)
    return round(len(text) / 1e6 / (time.perf_counter() - started))
