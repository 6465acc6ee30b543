"""Reading a version of the qrels: as arrays by query, by external ids, as TREC lines."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from benchmark.models import Qrels, QrelsRow

ROWS = """
SELECT query_id, documents, grades, origins FROM benchmark_qrelsrow WHERE qrels_id = %(qrels)s ORDER BY query_id
"""
NAMED = """
SELECT q.external_id, d.external_id, g.grade
FROM benchmark_qrelsrow r
CROSS JOIN LATERAL unnest(r.documents, r.grades) AS g(document, grade)
JOIN corpus_query q ON q.id = r.query_id JOIN corpus_document d ON d.id = g.document
WHERE r.qrels_id = %s ORDER BY q.external_id COLLATE "C", d.external_id COLLATE "C"
"""


class ReadQrel(NamedTuple):
    """A query's judged documents, ascending by primary key, their grades, and where each comes from: its origin."""

    documents: NDArray[np.int64]
    grades: NDArray[np.int16]
    origins: list[str]


def load(qrels: Qrels) -> dict[int, tuple[NDArray[np.int64], NDArray[np.int16]]]:
    """Load by query the judged documents, ascending, and their grades; both are empty for a query without grades."""
    rows = QrelsRow.objects.filter(qrels=qrels).order_by("query_id").values_list("query_id", "documents", "grades")
    return {
        query: (np.array(documents, dtype=np.int64), np.array(grades, dtype=np.int16))
        for query, documents, grades in rows
    }


def load_rows(qrels: Qrels) -> dict[int, ReadQrel]:
    """Load a version as `load` does, with origins."""
    return fetch_rows(ROWS, {"qrels": qrels.pk})


def fetch_rows(statement: str, values: dict[str, int]) -> dict[int, ReadQrel]:
    """Run a statement that selects a query, its documents, their grades and their origins."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return {
            query: ReadQrel(np.array(documents, dtype=np.int64), np.array(grades, dtype=np.int16), origins)
            for query, documents, grades, origins in cursor.fetchall()
        }


def load_named(qrels: Qrels) -> dict[str, dict[str, int]]:
    """Load a version by external ids: query id -> document id -> grade."""
    grades: dict[str, dict[str, int]] = {}
    for query, document, grade in _fetch_named_rows(qrels):
        grades.setdefault(query, {})[document] = grade
    return grades


def write_trec(qrels: Qrels) -> Iterator[str]:
    """Yield the lines of a TREC qrels file, by query id and document id."""
    for query, document, grade in _fetch_named_rows(qrels):
        yield f"{query} 0 {document} {grade}\n"


def _fetch_named_rows(qrels: Qrels) -> list[tuple[str, str, int]]:
    with connection.cursor() as cursor:
        cursor.execute(NAMED, [qrels.pk])
        return list(cursor.fetchall())
