"""Items with the reason `hole`: unjudged pairs of a pool that people are asked about, without a campaign."""

from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction

from corpus import table_statistics
from corpus.collections.task_order import MEASURING, PRIORITY_SQL, forget_watermarks, open_items
from corpus.models import Collection, Item

# Below every priority of the usual orders (-1 and more): items in the order of what they could settle begin here, and
# keep it when the collection's order changes (corpus.collections.task_order.reprioritise_tasks).
FIRST = -2.0

_HOLES = """
holes AS MATERIALIZED (
    SELECT w.pair, w.place, %(first)s + (w.place - 1) / %(count)s::float8 AS in_order
    FROM unnest(%(pairs)s::bigint[]) WITH ORDINALITY AS w(pair, place)
)"""
_UNASKED = f"""
SELECT c.id AS collection, p.id AS pair, NULL::bigint AS campaign, 'hole' AS reason,
    CASE WHEN %(ordered)s THEN h.in_order ELSE {PRIORITY_SQL.format(order="c.order", seed="c.seed")} END AS priority,
    c.overlap, h.place
FROM holes h JOIN corpus_pair p ON p.id = h.pair JOIN corpus_collection c ON c.id = p.collection_id
WHERE NOT EXISTS (
    SELECT FROM corpus_item i WHERE i.pair_id = p.id AND i.state IN ('open', 'conflict')
        AND i.reason <> 'evidence' AND i.reason <> ALL (%(measuring)s))"""
# A pair that waits for people already, for whatever reason, is not asked about twice.
OPEN = f"WITH {_HOLES} {open_items(_UNASKED, order='wanted.place')}"
HURRY = f"""
WITH {_HOLES}
UPDATE corpus_item i SET priority = h.in_order FROM holes h
WHERE i.pair_id = h.pair AND i.reason = 'hole' AND i.state IN ('open', 'conflict') AND i.priority > h.in_order
"""
WITHDRAW = """
UPDATE corpus_item SET state = 'withdrawn'
WHERE pair_id = ANY(%(pairs)s) AND reason = 'hole' AND state = 'open' AND taken = 0
"""


@transaction.atomic
def open_tasks(collection: Collection, pairs: Sequence[int], *, in_order: bool = False) -> int:
    """Open an item for each pair that does not wait for people yet; how many.

    They come by the collection's order; with `in_order` before everything else, in the order given, and what waits
    already as a hole moves up.
    """
    values: dict[str, Any] = {
        "pairs": list(pairs),
        "first": FIRST,
        "count": max(len(pairs), 1),
        "ordered": in_order,
        "measuring": list(MEASURING),
    }
    with connection.cursor() as cursor:
        if in_order:
            cursor.execute(HURRY, values)
        cursor.execute(OPEN, values)
        opened = int(cursor.rowcount)
    table_statistics.renew_statistics(opened, Item)
    forget_watermarks(collection)
    return opened


def withdraw_tasks(pairs: Sequence[int]) -> int:
    """Take back the holes among these that nobody has taken up; how many."""
    with connection.cursor() as cursor:
        cursor.execute(WITHDRAW, {"pairs": list(pairs)})
        return int(cursor.rowcount)
