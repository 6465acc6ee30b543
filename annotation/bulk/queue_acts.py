"""Acts on the queue: pairs are sent to people, and moved to the front or the back.

Each act locks rows in the order of their ids, assignments before items, as annotation.queue.statements does.
"""

from typing import Any

from django.db import connection

from corpus.collections.task_order import BACK, FRONT, LAST, MEASURING, PRIORITY_SQL, forget_watermarks, open_items
from corpus.models import Collection

BASES = {"first": FRONT, "normal": 0.0, "last": BACK}
WAITING = "i.state IN ('open', 'conflict') AND i.reason <> ALL (%(measuring)s)"
_ORDER = PRIORITY_SQL.format(order="c.order", seed="c.seed")

# What asks for texts is no question for a grade: such a pair can be sent, too.
NOT_SENT = f"""p.collection_id = %(collection)s AND p.id = ANY(%(pairs)s) AND NOT EXISTS (
    SELECT FROM corpus_item i WHERE i.pair_id = p.id AND {WAITING} AND i.reason <> 'evidence')"""
_WANTED = f"""
SELECT p.collection_id AS collection, p.id AS pair, NULL::bigint AS campaign, 'requested' AS reason,
       {_ORDER} AS priority, c.overlap AS overlap
FROM corpus_pair p JOIN corpus_collection c ON c.id = p.collection_id WHERE {NOT_SENT}"""
SEND = f"{open_items(_WANTED)} RETURNING id"
WITHDRAW = """
UPDATE corpus_item SET state = 'withdrawn' WHERE id IN (
    SELECT id FROM corpus_item WHERE id = ANY(%(items)s) AND state = 'open' AND taken = 0 ORDER BY id FOR UPDATE)"""

MOVE = f"""
WITH found AS MATERIALIZED (
    SELECT i.id, i.pair_id, i.priority AS before FROM corpus_item i
    WHERE i.collection_id = %(collection)s AND i.pair_id = ANY(%(pairs)s) AND {WAITING} ORDER BY i.id FOR UPDATE)
UPDATE corpus_item i SET priority = %(base)s + {_ORDER}
    + CASE WHEN i.reason = 'evidence' AND %(base)s::float8 = 0 THEN {LAST} ELSE 0 END
FROM found, corpus_pair p, corpus_collection c
WHERE i.id = found.id AND p.id = found.pair_id AND c.id = %(collection)s
RETURNING i.id, i.pair_id, found.before, i.priority"""
MOVE_BACK = """
UPDATE corpus_item i SET priority = moved.before
FROM unnest(%(items)s::bigint[], %(before)s::float8[], %(after)s::float8[]) AS moved (id, before, after)
WHERE i.id = moved.id AND i.state IN ('open', 'conflict') AND i.priority = moved.after"""

COUNTS = {
    "send": f"SELECT count(*) FROM corpus_pair p WHERE {NOT_SENT}",
    "priority": f"""SELECT count(DISTINCT i.pair_id) FROM corpus_item i
        WHERE i.collection_id = %(collection)s AND i.pair_id = ANY(%(pairs)s) AND {WAITING}""",
}
"""How many pairs each act would change."""


def fetch_rows(statement: str, collection: Collection, pairs: list[int], **values: Any) -> list[tuple[Any, ...]]:
    """Run a statement about selected pairs and return its rows."""
    common: dict[str, Any] = {"collection": collection.pk, "pairs": pairs, "measuring": list(MEASURING)}
    with connection.cursor() as cursor:
        cursor.execute(statement, common | values)
        return list(cursor.fetchall())


def send_pairs(collection: Collection, pairs: list[int]) -> tuple[int, dict[str, Any]]:
    """Open a task for each pair that has none; return how many, and what undo needs."""
    items = [pk for (pk,) in fetch_rows(SEND, collection, pairs)]
    forget_watermarks(collection)
    return len(items), {"items": items}


def withdraw_sent(collection: Collection, changes: dict[str, Any]) -> int:
    """Withdraw the tasks that nobody took meanwhile; return how many."""
    with connection.cursor() as cursor:
        cursor.execute(WITHDRAW, {"items": changes["items"]})
        return int(cursor.rowcount)


def move_pairs(collection: Collection, pairs: list[int], to: str) -> tuple[int, dict[str, Any]]:
    """Set waiting tasks' priority to a key of BASES; return the number of pairs changed, and what undo needs."""
    rows = fetch_rows(MOVE, collection, pairs, base=BASES[to])
    forget_watermarks(collection)
    moved = [(item, before, after) for item, _, before, after in rows]
    return len({pair for _, pair, _, _ in rows}), {"moved": moved}


def move_back(collection: Collection, changes: dict[str, Any]) -> int:
    """Restore tasks' earlier priority where nothing else changed it since; return their number."""
    moved = changes["moved"]
    columns = {name: [row[place] for row in moved] for place, name in enumerate(("items", "before", "after"))}
    with connection.cursor() as cursor:
        cursor.execute(MOVE_BACK, columns)
        count = int(cursor.rowcount)
    forget_watermarks(collection)
    return count
