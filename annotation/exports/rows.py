"""Rows of the exports, straight from PostgreSQL: ordered by query id and document id, streamed."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection

from annotation.agreement.grade_matrix import copied_places, judge_names, vote_names
from annotation.label_sources.aggregated_labels import AggregatedLabels
from annotation.label_sources.statements import AGGREGATED, KEPT, ORDER, PAIRS
from corpus.aspects.exchange import ROWS as ASPECTS
from corpus.models import Collection
from judges.campaigns.selectors import LAST_DEBATE, campaigns_that_count
from judges.models import Campaign

BATCH = 5_000
Row = tuple[Any, ...]

_CHOSEN = f"""FROM {{labels}} l {PAIRS.format(of="l")}
    WHERE l.aspect_id IS NULL AND (%(origins)s::text[] IS NULL OR l.origin = ANY(%(origins)s::text[])) AND {KEPT}"""
CHOSEN_LABELS = _CHOSEN.format(labels="corpus_label")
CHOSEN_AGGREGATED = _CHOSEN.format(labels=AGGREGATED)
LABELS = f"SELECT q.external_id, d.external_id, l.grade, l.origin {CHOSEN_LABELS} ORDER BY {ORDER}"
AGGREGATED_LABELS = f"""SELECT q.external_id, d.external_id, l.grade, l.origin, l.posterior
    {CHOSEN_AGGREGATED} ORDER BY {ORDER}"""

# `again`: places where a judge stands once more on its panel: each of its samples is a vote of its own.
JUDGMENTS = f"""
    SELECT q.external_id, d.external_id, j.name, j.kind, j.grade, j.step, j.arm, j.guideline, j.ms, j.time,
           j."window", j.judge, j.number
    FROM (
        SELECT j.pair_id, a.name, a.kind, j.grade, j.step, j.arm, j.guideline, j.milliseconds AS ms,
               j.created_at AS time, 0 AS "window", NULL::bigint AS judge, 0 AS number, j.id
        FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id AND a.collection_id = %(collection)s
        WHERE j.aspect_id IS NULL
        UNION ALL
        SELECT v.* FROM (
            SELECT DISTINCT ON (pair_id, judge_id, again.number) pair_id, '' AS name, 'judge' AS kind,
                   verdict * %(relevant_from)s AS grade, 'vote' AS step, '' AS arm, 0 AS guideline,
                   milliseconds AS ms, created_at AS time, "window", judge_id AS judge,
                   COALESCE(again.number, 0) AS number, id
            FROM counted_attempt v
            LEFT JOIN unnest(%(again_campaigns)s::bigint[], %(again_places)s::int[], %(again_numbers)s::int[])
                AS again(campaign, place, number) ON again.campaign = campaign_id AND again.place = v.place
            WHERE campaign_id = ANY(%(campaigns)s) AND role = 'vote' AND outcome = 'labelled'
            ORDER BY pair_id, judge_id, again.number, campaign_id DESC, v.place
        ) v
    ) j {PAIRS.format(of="j")}
    ORDER BY {ORDER}, j.kind COLLATE "C", j.name COLLATE "C", j.judge, j.number, j.id
"""

MARKS = f"""
    SELECT q.external_id, d.external_id, a.name, j.grade, span.start, span.end,
           substr(d.text, span.start + 1, span.end - span.start), j.created_at
    FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id AND a.collection_id = %(collection)s
    CROSS JOIN LATERAL (
        SELECT (one ->> 0)::int AS start, (one ->> 1)::int AS end FROM jsonb_array_elements(j.spans) one) span
    {PAIRS.format(of="j")}
    WHERE j.spans IS NOT NULL AND j.aspect_id IS NULL
    ORDER BY {ORDER}, a.name COLLATE "C", j.id, span.start
"""

DEBATES = f"""
    SELECT q.external_id, d.external_id, t.round, t.role, t.judge_id, t.verdict, t.reason, t.quotes, t."window"
    FROM (
        SELECT a.pair_id, a.round, a.role, a.judge_id, a.verdict, a.reason, a.quotes, a."window",
               rank() OVER (PARTITION BY a.pair_id ORDER BY {LAST_DEBATE.format(of="a")}) AS place
        FROM counted_attempt a
        WHERE campaign_id = ANY(%(campaigns)s) AND role IN ('for', 'against') AND outcome = 'labelled'
    ) t {PAIRS.format(of="t")}
    WHERE t.place = 1
    ORDER BY {ORDER}, t.round, t.role = 'against'
"""


def rows_of(
    format_name: str,
    collection: Collection,
    origins: Sequence[str] | None,
    left_out: Sequence[int] = (),
    aggregated: AggregatedLabels | None = None,
) -> Iterator[list[Row]]:
    """Yield batches of rows as the format's `line` takes them. `origins` limits labels (None: all), `left_out`: pairs
    whose labels are left out. `aggregated`: labels in place of the collection's, each row with its posterior."""
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
        again = list(zip(*copied_places(panels), strict=True)) or [(), (), ()]
        parameters |= dict(zip(("again_campaigns", "again_places", "again_numbers"), map(list, again), strict=True))
        for batch in fetch_batches(JUDGMENTS, parameters):
            yield [
                (query, document, name if judge is None else voters[judge, number], *rest)
                for query, document, name, *rest, judge, number in batch
            ]
    elif format_name == "debates":
        names = judge_names(campaigns)
        for batch in fetch_batches(DEBATES, parameters):
            yield [
                (
                    *start,
                    names[judge],
                    verdict,
                    reason,
                    json.loads(quotes) if isinstance(quotes, str) else quotes,
                    window,
                )
                for *start, judge, verdict, reason, quotes, window in batch
            ]
    elif aggregated is not None:
        yield from fetch_batches(AGGREGATED_LABELS, parameters | aggregated.columns)
    else:
        yield from fetch_batches({"marks": MARKS, "aspects": ASPECTS}.get(format_name, LABELS), parameters)


def fetch_batches(sql: str, parameters: dict[str, Any]) -> Iterator[list[Row]]:
    """Yield rows from a server-side cursor, so that memory does not grow with the rows. Needs an open transaction."""
    # The order of millions of rows is made in memory as far as it fits; the default of 4 MB goes to the disk.
    with connection.cursor() as settings:
        settings.execute("SET LOCAL work_mem = '64MB'")
    with connection.chunked_cursor() as cursor:
        cursor.execute(sql, parameters)
        while batch := cursor.fetchmany(BATCH):
            yield batch
