"""Bulk acts on the queue: send pairs to people, and move them to the front or the back.

Each act locks rows in the order of their ids, assignments before items, as annotation.work.queue.statements does.
"""

from typing import Any

from annotation.models.pair_table import BulkAct
from corpus.collections.task_order import BACK, FRONT, forget_watermarks
from store.sql import execute, fetch_rows, read_sql

BASES = {"first": FRONT, "normal": 0.0, "last": BACK}
SEND = read_sql(__file__, "send_pairs")
MOVE = read_sql(__file__, "move_pairs")
WITHDRAW = """
UPDATE corpus_item SET state = 'withdrawn' WHERE id IN (
    SELECT id FROM corpus_item WHERE id = ANY(%(items)s) AND state = 'open' AND taken = 0 ORDER BY id FOR UPDATE)"""

MOVE_BACK = """
UPDATE corpus_item i SET priority = moved.before
FROM unnest(%(items)s::bigint[], %(before)s::float8[], %(after)s::float8[]) AS moved (id, before, after)
WHERE i.id = moved.id AND i.state IN ('open', 'conflict') AND i.priority = moved.after"""

# How many pairs each act would change.
COUNTS = {
    "send": """
        SELECT count(*) FROM corpus_pair p
        WHERE p.collection_id = %(collection)s AND p.id = ANY(%(pairs)s) AND NOT EXISTS (
            SELECT FROM corpus_item i WHERE i.pair_id = p.id AND i.state IN ('open', 'conflict')
              AND i.reason <> 'evidence' AND NOT is_measuring(i.reason))
    """,
    "priority": """
        SELECT count(DISTINCT i.pair_id) FROM corpus_item i
        WHERE i.collection_id = %(collection)s AND i.pair_id = ANY(%(pairs)s)
          AND i.state IN ('open', 'conflict') AND NOT is_measuring(i.reason)
    """,
}


def send_pairs(act: BulkAct) -> tuple[int, dict[str, Any]]:
    """Open a task for each pair without one; return how many, and what undo needs."""
    items = [pk for (pk,) in fetch_rows(SEND, collection=act.collection_id, pairs=act.pairs)]
    forget_watermarks(act.collection)
    return len(items), {"items": items}


def withdraw_sent(act: BulkAct) -> int:
    """Withdraw the tasks that nobody was assigned meanwhile; return how many."""
    return execute(WITHDRAW, items=act.changes["items"])


def move_pairs(act: BulkAct) -> tuple[int, dict[str, Any]]:
    """Set waiting tasks' priority to a key of BASES; return the number of pairs changed, and what undo needs."""
    rows = fetch_rows(MOVE, collection=act.collection_id, pairs=act.pairs, base=BASES[act.option])
    forget_watermarks(act.collection)
    moved = [(item, before, after) for item, _pair, before, after in rows]
    return len({pair for _item, pair, *_moved in rows}), {"moved": moved}


def move_back(act: BulkAct, statement: str = MOVE_BACK, **parameters: Any) -> int:
    """Restore tasks' earlier priority where nothing has changed it since; return their number."""
    moved = act.changes["moved"]
    columns = {name: [row[index] for row in moved] for index, name in enumerate(("items", "before", "after"))}
    count = execute(statement, **columns, **parameters)
    forget_watermarks(act.collection)
    return count
