"""Rows of exports, streamed from PostgreSQL in the order of query id and document id."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection

from annotation.agreement.grade_matrix import copied_places, judge_names, vote_names
from annotation.exports.label_sources.aggregated_labels import AggregatedLabels
from corpus.aspects.exchange import ROWS as ASPECTS
from corpus.models import Collection
from judges.campaigns.selectors import campaigns_that_count
from judges.models import Campaign
from store.sql import read_sql

BATCH = 5_000
Row = tuple[Any, ...]

LABELS = """
SELECT p.query, p.document, l.grade, l.origin
FROM corpus_label l JOIN current_pair p ON p.id = l.pair_id AND p.collection_id = %(collection)s
WHERE l.aspect_id IS NULL AND (%(origins)s::text[] IS NULL OR l.origin = ANY(%(origins)s::text[]))
  AND NOT EXISTS (SELECT FROM unnest(%(left_out)s::bigint[]) AS excluded(pair) WHERE excluded.pair = p.id)
ORDER BY p.query COLLATE "C", p.document COLLATE "C"
"""
# Aggregated labels (annotation.exports.label_sources.aggregated_labels).
AGGREGATED_LABELS = """
SELECT p.query, p.document, l.grade, l.origin, l.posterior
FROM unnest(%(label_pairs)s::bigint[], %(label_grades)s::smallint[], %(label_origins)s::text[],
            %(label_posteriors)s::float8[]) AS l(pair_id, grade, origin, posterior)
JOIN current_pair p ON p.id = l.pair_id AND p.collection_id = %(collection)s
WHERE (%(origins)s::text[] IS NULL OR l.origin = ANY(%(origins)s::text[]))
  AND NOT EXISTS (SELECT FROM unnest(%(left_out)s::bigint[]) AS excluded(pair) WHERE excluded.pair = p.id)
ORDER BY p.query COLLATE "C", p.document COLLATE "C"
"""
JUDGMENTS = read_sql(__file__, "read_judgments")
MARKS = read_sql(__file__, "read_marks")
DEBATES = read_sql(__file__, "read_debates")


def rows_of(
    format_name: str,
    collection: Collection,
    origins: Sequence[str] | None,
    left_out: Sequence[int] = (),
    aggregated: AggregatedLabels | None = None,
) -> Iterator[list[Row]]:
    """Yield batches of rows for the format's `line`.

    `origins`: those of the labels (None: all); `left_out`: pairs whose labels are left out; `aggregated`:
    labels in place of the collection's, with their posteriors.
    """
    campaigns = list(campaigns_that_count(collection).values_list("pk", flat=True))
    parameters = {
        "collection": collection.pk,
        "relevant_from": collection.relevant_from,
        "campaigns": campaigns,
        "origins": list(origins) if origins is not None else None,
        "left_out": list(left_out),
    }
    if format_name == "judgments":
        voters = vote_names(campaigns)
        panels = Campaign.objects.filter(pk__in=campaigns).values_list("pk", "voters")
        copies = list(zip(*copied_places(panels), strict=True)) or [(), (), ()]
        parameters |= dict(zip(("again_campaigns", "again_places", "again_numbers"), map(list, copies), strict=True))
        for batch in fetch_batches(JUDGMENTS, parameters):
            yield [
                (query, document, name if judge is None else voters[judge, number], *columns)
                for query, document, name, *columns, judge, number in batch
            ]
    elif format_name == "debates":
        names = judge_names(campaigns)
        for batch in fetch_batches(DEBATES, parameters):
            yield [
                (
                    *columns,
                    names[judge],
                    verdict,
                    reason,
                    json.loads(quotes) if isinstance(quotes, str) else quotes,
                    window,
                )
                for *columns, judge, verdict, reason, quotes, window in batch
            ]
    elif aggregated is not None:
        yield from fetch_batches(AGGREGATED_LABELS, parameters | aggregated.columns)
    else:
        yield from fetch_batches({"marks": MARKS, "aspects": ASPECTS}.get(format_name, LABELS), parameters)


def fetch_batches(sql: str, parameters: dict[str, Any]) -> Iterator[list[Row]]:
    """Yield batches of rows from a server-side cursor, so that memory does not grow. Needs an open transaction."""
    # With the default of 4 MB, millions of rows are sorted on disk.
    with connection.cursor() as settings:
        settings.execute("SET LOCAL work_mem = '64MB'")
    with connection.chunked_cursor() as cursor:
        cursor.execute(sql, parameters)
        while batch := cursor.fetchmany(BATCH):
            yield batch
