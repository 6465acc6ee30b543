"""Time that people take for a judgment: on the page without idle time, of both votes where there are two."""

from django.db import connection

from corpus.models import Collection

# Of everybody's newest 100: a page must not read all judgments.
TIME = """
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY j.milliseconds - coalesce(j.idle_milliseconds, 0)
                                                   + coalesce(f.milliseconds - coalesce(f.idle_milliseconds, 0), 0))
FROM annotation_membership m CROSS JOIN LATERAL (
    SELECT judgment_id, first_id FROM annotation_assignment
    WHERE membership_id = m.id AND state = 'done' ORDER BY ended_at DESC LIMIT 100) newest
JOIN corpus_judgment j ON j.id = newest.judgment_id
LEFT JOIN corpus_judgment f ON f.id = newest.first_id
WHERE m.collection_id = %(collection)s
"""


def median_seconds(collection: Collection) -> float | None:
    """Return the median time of a judgment in seconds; None where there is none. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(TIME, {"collection": collection.pk})
        (median,) = cursor.fetchone()
    return None if median is None else float(median) / 1000
