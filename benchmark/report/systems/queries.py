"""Queries of the benchmark: a list with counts of judgments, and one query with the results of every system."""

from typing import Any

from django.db import connection

from benchmark.models import QrelsRow, Ranking
from benchmark.qrels.versions import latest_version
from benchmark.report.systems import chosen
from corpus.models import Collection, Document, Query
from jobs.models import JobState

PAGE = 50
# States of a returned document; `judged` means judged not relevant.
STATES = ("relevant", "hole", "judged", "unjudged")
FIRST = 6  # Systems that a query's page shows side by side by default.

# LIMIT 1 of a unique row makes PostgreSQL use the index, also before it has statistics of the table.
LIST = """
SELECT q.id, coalesce(cardinality(r.documents), 0),
    (SELECT count(*) FROM unnest(r.grades) grade WHERE grade >= %(relevant)s),
    (SELECT count(*) FROM unnest(r.grades, r.origins) AS judgment(grade, origin)
        WHERE grade >= %(relevant)s AND origin <> 'original') AS holes
FROM corpus_query q LEFT JOIN LATERAL (
    SELECT * FROM benchmark_qrelsrow WHERE qrels_id = %(qrels)s AND query_id = q.id LIMIT 1
) r ON true
WHERE q.collection_id = %(collection)s AND q.is_current AND (q.text ILIKE %(like)s OR q.external_id = %(exact)s)
ORDER BY {order} LIMIT %(limit)s OFFSET %(offset)s
"""
ORDERS = {"holes": "holes DESC, q.id", "judged": "2 DESC, q.id", "id": "q.external_id, q.id"}


def list_queries(collection: Collection, *, words: str, order: str, page: int, whole: bool = False) -> dict[str, Any]:
    """Return queries whose text contains the words, 50 per page, by default those with most holes first.

    Each row has the query and how many of its documents are judged, relevant, and holes: relevant,
    but not in the original qrels. `whole`: all queries at once, for a download.
    """
    version = latest_version(collection)
    order = order if order in ORDERS else "holes"
    # These three characters are special in a LIKE pattern; in a search they mean themselves.
    like = words.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    values: dict[str, int | str | None] = {
        "collection": collection.pk,
        "qrels": version.pk if version else 0,
        "relevant": collection.relevant_from,
        "like": f"%{like}%",
        "exact": words,
        "limit": None if whole else PAGE + 1,
        "offset": 0 if whole else (page - 1) * PAGE,
    }
    with connection.cursor() as cursor:
        cursor.execute(LIST.format(order=ORDERS[order]), values)
        fetched_rows = cursor.fetchall()
    page_rows = fetched_rows if whole else fetched_rows[:PAGE]
    queries = Query.objects.in_bulk([key for key, *_ in page_rows])
    rows = [
        {"query": queries[key], "judged": judged, "relevant": relevant or 0, "holes": holes or 0}
        for key, judged, relevant, holes in page_rows
    ]
    # One row more than a page was fetched, so that no other statement is needed to know of a next page.
    return {"rows": rows, "order": order, "words": words, "page": page, "has_more": len(fetched_rows) > len(page_rows)}


def side_by_side(collection: Collection, query: Query, *, names: list[str], k: int) -> dict[str, Any]:
    """Return systems' rankings of a query side by side. `names`: runs to show; by default the first six."""
    runs = [run for run in chosen.runs_of(collection) if run.state == JobState.READY]
    shown = [run for run in runs if run.name in names] or runs[:FIRST]
    versions = chosen.versions_of(collection)
    before, after = (versions[0], versions[-1]) if versions else (None, None)
    rows = (
        {row.qrels_id: row for row in QrelsRow.objects.filter(qrels__in=[before, after], query=query)} if after else {}
    )
    first, last = (rows.get(version.pk) if version else None for version in (before, after))
    original_documents, grades = set(first.documents) if first else set(), dict[int, int]()
    if last:
        grades = dict(zip(last.documents, last.grades, strict=True))
    ranked = {row.run_id: row for row in Ranking.objects.filter(run__in=shown, query=query)}
    keys = {key for row in ranked.values() for key in row.documents[:k]}
    documents = Document.objects.defer("text").in_bulk(keys)
    cells: dict[int, dict[str, Any]] = {}
    for key, document in documents.items():
        grade = grades.get(key)
        state = "relevant" if key in original_documents else "hole"
        if grade is None or grade < collection.relevant_from:
            state = "unjudged" if grade is None else "judged"
        cells[key] = {"document": document, "state": state, "grade": grade}
    columns: list[dict[str, Any]] = []
    for run in shown:
        row = ranked.get(run.pk) or Ranking(documents=[])
        run_cells = [cells.get(key) for key in row.documents[:k]]
        run_cells += [None] * (k - len(run_cells))  # the table has k rows, however short a ranking is
        columns.append({"run": run, "cells": run_cells, "seconds": row.seconds, "text": row.text})
    counts = dict.fromkeys(STATES, 0)
    for cell in cells.values():
        counts[cell["state"]] += 1
    return {
        "columns": columns,
        "rows": [(rank + 1, [column["cells"][rank] for column in columns]) for rank in range(k)],
        "others": [run for run in runs if run not in shown],
        "counts": counts,
        "excluded": query.metadata.get("excluded_ids") or [],
        "k": k,
    }
