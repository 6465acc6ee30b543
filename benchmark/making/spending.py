"""What a run took: seconds and tokens, summed over its queries (SPEC S10: each system records them)."""

from typing import Any

from django.db import connection

from benchmark.models import Run

SQL = """
SELECT count(*), COALESCE(sum(cardinality(documents)), 0), count(*) FILTER (WHERE cardinality(documents) = 0),
       sum(seconds), avg(seconds), COALESCE(sum(tokens_in), 0), COALESCE(sum(tokens_out), 0)
FROM benchmark_ranking WHERE run_id = %s
"""
FIELDS = ("queries", "documents", "empty", "seconds", "seconds_per_query", "tokens_in", "tokens_out")


def spent(run: Run) -> dict[str, Any]:
    """Rankings, their documents, those without any; seconds (null: unknown) and tokens in all, seconds of a query."""
    with connection.cursor() as cursor:
        cursor.execute(SQL, [run.pk])
        return dict(zip(FIELDS, cursor.fetchone(), strict=True))
