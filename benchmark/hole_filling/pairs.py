"""Pairs of a pool: created where missing, and queued for people with the reason `hole`."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from corpus import table_statistics
from corpus.collections.task_order import forget_watermarks
from corpus.importing.staging import copy_lines, create_temporary_table, ignore_progress, plan_for_bulk
from corpus.labels import ADJUDICATOR, PEOPLE
from corpus.models import Collection, Item, Label
from store.sql import execute, fetch_rows, read_sql

Integers = NDArray[np.int64]
FINAL = (PEOPLE, ADJUDICATOR)  # Origins of final labels: judges are not asked about these pairs.
# Below every priority of the usual orders (-1 and more): tasks sorted by informativeness start here,
# and keep their order when the collection's order changes (corpus.collections.task_order.reprioritise_tasks).
FIRST = -2.0

OPEN = read_sql(__file__, "open_tasks")
HURRY = """
WITH holes AS MATERIALIZED (
    SELECT w.pair, %(first)s + (w.place - 1) / %(count)s::float8 AS in_order
    FROM unnest(%(pairs)s::bigint[]) WITH ORDINALITY AS w(pair, place)
)
UPDATE corpus_item i SET priority = h.in_order FROM holes h
WHERE i.pair_id = h.pair AND i.reason = 'hole' AND i.state IN ('open', 'conflict') AND i.priority > h.in_order
"""
BECOME_CANDIDATES = """
UPDATE corpus_pair p SET is_candidate = true FROM filling_pool s
WHERE p.query_id = s.query_id AND p.document_id = s.document_id AND NOT p.is_candidate
"""
MAKE_PAIRS = """
INSERT INTO corpus_pair (collection_id, query_id, document_id, is_candidate, uncertainty)
SELECT %(collection)s, s.query_id, s.document_id, true, 0 FROM filling_pool s
JOIN corpus_query q ON q.id = s.query_id AND q.is_current AND q.collection_id = %(collection)s
JOIN corpus_document d ON d.id = s.document_id AND d.is_current AND d.collection_id = %(collection)s
WHERE NOT EXISTS (SELECT FROM corpus_pair p WHERE p.query_id = s.query_id AND p.document_id = s.document_id)
ORDER BY s.query_id, s.document_id
"""
POOL = """
SELECT p.id FROM filling_pool s
JOIN current_pair p ON p.query_id = s.query_id AND p.document_id = s.document_id ORDER BY s.place
"""
WITHDRAW = """
UPDATE corpus_item SET state = 'withdrawn'
WHERE pair_id = ANY(%(pairs)s) AND reason = 'hole' AND state = 'open' AND taken = 0
"""


def pairs_of(collection: Collection, queries: Integers, documents: Integers) -> list[int]:
    """Return the ids of these pairs in their order, creating missing ones; all become candidates (ADR 0003).

    Pairs with a text that is no longer current are left out. Call it inside a transaction.
    """
    # There may be some hundred thousand pairs: they are copied into a temporary table and joined.
    plan_for_bulk()
    create_temporary_table("filling_pool", "place int, query_id bigint, document_id bigint")
    pairs = enumerate(zip(queries.tolist(), documents.tolist(), strict=True))
    lines = (f"{position}\t{query}\t{document}\n" for position, (query, document) in pairs)
    copy_lines("filling_pool", lines, "pairs", ignore_progress)
    execute("ANALYZE filling_pool")
    # Only rows that change: an UPDATE of all would rewrite and lock a million rows.
    execute(BECOME_CANDIDATES)
    execute(MAKE_PAIRS, collection=collection.pk)
    return [pair for (pair,) in fetch_rows(POOL)]


def known_to_people(collection: Collection, queries: Integers, documents: Integers) -> int:
    """Count the pairs that people or an adjudicator have already labelled."""
    labels = Label.objects.filter(pair__collection=collection, aspect=None, origin__in=FINAL)
    return count_among(labels.values_list("pair__query_id", "pair__document_id"), queries, documents)


def count_among(judged_pairs: Iterable[tuple[int, int]], queries: Integers, documents: Integers) -> int:
    """Count the pairs of `queries` and `documents` that are among `judged_pairs`."""
    # Building the pairs takes longer than the look-up, so an empty set is answered at once.
    judged_set = set(judged_pairs)
    return (
        sum(pair in judged_set for pair in zip(queries.tolist(), documents.tolist(), strict=True)) if judged_set else 0
    )


@transaction.atomic
def open_tasks(collection: Collection, pairs: Sequence[int], *, in_order: bool = False) -> int:
    """Open a task for each pair that is not yet waiting for people; return their number.

    Tasks follow the collection's order. With `in_order` they come before all others, in the order of
    `pairs`, and tasks that are already open as holes move up.
    """
    values: dict[str, Any] = {"pairs": list(pairs), "first": FIRST, "count": max(len(pairs), 1)}
    if in_order:
        execute(HURRY, **values)
    count = execute(OPEN, **values, ordered=in_order)
    # A bulk insert leaves the planner with old statistics, and the queue's statements with slow plans.
    table_statistics.renew_statistics(count, Item)
    forget_watermarks(collection)
    return count
