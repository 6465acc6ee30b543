"""Queries of the benchmark: a list with what is known of each, and one query with what every system returned."""

from typing import Any

from django.db import connection

from benchmark.models import QrelsRow, Ranking
from benchmark.qrels.versions import latest_version
from benchmark.systems import chosen
from corpus.models import Collection, Document, Query
from jobs.models import JobState

PAGE = 50
# What a returned document is; `judged` is not relevant.
STATES = ("relevant", "hole", "judged", "unjudged")
FIRST = 6  # Systems that a query's page shows side by side unless somebody chooses others.

# LIMIT 1 of what is unique: the row is looked up by its index, also before the table's statistics are known.
LIST = """
SELECT q.id, coalesce(cardinality(r.documents), 0),
    (SELECT count(*) FROM unnest(r.grades) grade WHERE grade >= %(relevant)s),
    (SELECT count(*) FROM unnest(r.grades, r.origins) AS one(grade, origin)
        WHERE grade >= %(relevant)s AND origin <> 'original') AS holes
FROM corpus_query q LEFT JOIN LATERAL (
    SELECT * FROM benchmark_qrelsrow WHERE qrels_id = %(qrels)s AND query_id = q.id LIMIT 1
) r ON true
WHERE q.collection_id = %(collection)s AND q.is_current AND (q.text ILIKE %(like)s OR q.external_id = %(exact)s)
ORDER BY {order} LIMIT %(limit)s OFFSET %(offset)s
"""
ORDERS = {"holes": "holes DESC, q.id", "judged": "2 DESC, q.id", "id": "q.external_id, q.id"}


def list_queries(collection: Collection, *, words: str, order: str, page: int, whole: bool = False) -> dict[str, Any]:
    """Queries whose text holds the words, 50 a page, with most holes first unless asked otherwise.

    Each row has the query and how many of its documents are judged, relevant, and holes: relevant,
    but not of the original qrels. `whole`: all of them at once, to be saved.
    """
    version = latest_version(collection)
    order = order if order in ORDERS else "holes"
    # In a pattern of LIKE these three letters stand for others; a reader who types them means them.
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
        found = cursor.fetchall()
    some = found if whole else found[:PAGE]
    queries = Query.objects.in_bulk([key for key, *_ in some])
    rows = [
        {"query": queries[key], "judged": judged, "relevant": relevant or 0, "holes": holes or 0}
        for key, judged, relevant, holes in some
    ]
    # One row more than a page was asked for: whether there is a next page costs no statement of its own.
    return {"rows": rows, "order": order, "words": words, "page": page, "has_more": len(found) > len(some)}


def side_by_side(collection: Collection, query: Query, *, names: list[str], k: int) -> dict[str, Any]:
    """Return systems' rankings of a query side by side. `names`: which; none: six."""
    runs = [run for run in chosen.runs_of(collection) if run.state == JobState.READY]
    shown = [run for run in runs if run.name in names] or runs[:FIRST]
    versions = chosen.versions_of(collection)
    before, after = (versions[0], versions[-1]) if versions else (None, None)
    rows = (
        {row.qrels_id: row for row in QrelsRow.objects.filter(qrels__in=[before, after], query=query)} if after else {}
    )
    first, last = (rows.get(version.pk) if version else None for version in (before, after))
    known, graded = set(first.documents) if first else set(), dict[int, int]()
    if last:
        graded = dict(zip(last.documents, last.grades, strict=True))
    ranked = {row.run_id: row for row in Ranking.objects.filter(run__in=shown, query=query)}
    keys = {key for row in ranked.values() for key in row.documents[:k]}
    documents = Document.objects.defer("text").in_bulk(keys)
    cells: dict[int, dict[str, Any]] = {}
    for key, document in documents.items():
        grade = graded.get(key)
        state = "relevant" if key in known else "hole"
        if grade is None or grade < collection.relevant_from:
            state = "unjudged" if grade is None else "judged"
        cells[key] = {"document": document, "state": state, "grade": grade}
    columns: list[dict[str, Any]] = []
    for run in shown:
        row = ranked.get(run.pk) or Ranking(documents=[])
        found = [cells.get(key) for key in row.documents[:k]]
        found += [None] * (k - len(found))  # the table has k rows, however short a ranking is
        columns.append({"run": run, "cells": found, "seconds": row.seconds, "text": row.text})
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
