"""The order of the queue: an item's priority (smaller is assigned first) and its place among equals."""

from collections.abc import Sequence
from hashlib import sha256

from django.db import connection, transaction

from corpus.models import Collection


def pair_priority(order: str, seed: int, *, pair_id: int, query_id: int, uncertainty: float) -> float:
    """Return the priority of a pair's item under the collection's order, as PRIORITY_SQL does. Pure."""
    if order == Collection.Order.QUERY:
        return float(query_id)
    if order == Collection.Order.RANDOM:
        digest = sha256(f"{seed}:{pair_id}".encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48
    return -uncertainty


# `priority` in SQL for a pair `p`; format it with the SQL of `order` and `seed` (placeholders or columns).
PRIORITY_SQL = "queue_priority({order}, {seed}, p.id, p.query_id, p.uncertainty)"

# Reasons of items whose judgments measure: they come to no label and to no conflict.
MEASURING = ("study", "check", "repeat", "qualification")

# The number of the next item of a `wanted` pair and reason.
NEXT_SEQ = """COALESCE(
    (SELECT max(i.seq) + 1 FROM corpus_item i WHERE i.pair_id = wanted.pair AND i.reason = wanted.reason), 0)"""

# Added for items that ask for texts: they say that a pair is relevant, so whoever audits it blind gets that first.
LAST = 1e9

# Added where an admin wants a pair first or last, whatever the order; a new order leaves such items where they are.
FRONT, BACK = -1e9, 1e12
CHOSEN = f"(i.priority < {FRONT / 2} OR i.priority > {BACK / 2})"


def open_items(
    wanted: str, *, order: str = "pair", seq: str = NEXT_SEQ, taken: int = 0, also: Sequence[str] = ()
) -> str:
    """Return the INSERT of an item for each row of a SELECT; append ON CONFLICT or RETURNING where wanted.

    `wanted` yields collection, pair, campaign, reason, priority and overlap, and the columns named in `also`.
    `order` is that of places in the queue; `taken`: how many people hold the item already.
    """
    more = "".join(f", {name}" for name in also)
    return f"""INSERT INTO corpus_item
        (collection_id, pair_id, campaign, reason, priority, overlap, seq, state, taken, done{more})
    SELECT collection, pair, campaign, reason, priority, overlap, {seq}, 'open', {taken}, 0{more}
    FROM ({wanted}) wanted ORDER BY {order}"""


def next_place() -> int:
    """Return a place behind all others, for rows written through the ORM."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('corpus_item_place')")
        (place,) = cursor.fetchone()
    return int(place)


@transaction.atomic
def reprioritise_tasks(collection: Collection) -> int:
    """Give all unresolved items the priority of the collection's present order; return the number changed."""
    # Items of a study come first to those who take part, whatever the order; and holes that were sent in the order of
    # what they could settle (below -1) keep that order.
    new = PRIORITY_SQL.format(order="%(order)s", seed="%(seed)s")
    new = f"({new} + CASE i.reason WHEN 'evidence' THEN {LAST} ELSE 0 END)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""UPDATE corpus_item i SET priority = {new} FROM corpus_pair p
                WHERE p.id = i.pair_id AND i.collection_id = %(collection)s AND i.state IN ('open', 'conflict')
                  AND i.reason <> 'study' AND NOT (i.reason = 'hole' AND i.priority < -1) AND NOT {CHOSEN}
                  AND i.priority IS DISTINCT FROM {new}""",
            {"order": collection.order, "seed": collection.seed, "collection": collection.pk},
        )
        changed = int(cursor.rowcount)
    forget_watermarks(collection)
    return changed


def forget_watermarks(collection: Collection) -> None:
    """Forget how far annotators went through the queue, in which everything may be new to everyone again."""
    # The table is of a layer above, which this one must not import: it is found through the collection's relations.
    for relation in Collection._meta.related_objects:
        fields = {field.name for field in relation.related_model._meta.get_fields()}
        if {"watermark_priority", "watermark_place"} <= fields:
            rows = relation.related_model._default_manager.filter(collection=collection)
            rows.update(watermark_priority=None, watermark_place=None)


@transaction.atomic
def change_overlap(collection: Collection, overlap: int) -> int:
    """Ask `overlap` people for every open item, never fewer than already took it; return the number changed."""
    # An open item whose judgments already reach the new number keeps one more place open for the deciding person: it
    # settles at the next judgment, not by a change of settings.
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE corpus_item
               SET overlap = GREATEST(%(overlap)s, taken, done + 1)
               WHERE collection_id = %(collection)s AND state = 'open' AND reason NOT IN ('audit', 'evidence')
                 AND reason <> ALL (%(measuring)s) AND overlap <> GREATEST(%(overlap)s, taken, done + 1)""",
            {"overlap": overlap, "collection": collection.pk, "measuring": list(MEASURING)},
        )
        changed = int(cursor.rowcount)
    forget_watermarks(collection)
    return changed
