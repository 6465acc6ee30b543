"""The order of the queue: an item's priority (smaller first), then its place."""

from hashlib import sha256

from django.db import transaction

from corpus.models import Collection
from store.sql import execute, fetch_row


def pair_priority(order: str, seed: int, *, pair_id: int, query_id: int, uncertainty: float) -> float:
    """Return the priority of a pair's item under the collection's order, like queue_priority in SQL. Pure."""
    if order == Collection.Order.QUERY:
        return float(query_id)
    if order == Collection.Order.RANDOM:
        digest = sha256(f"{seed}:{pair_id}".encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48
    return -uncertainty


# Reasons of items whose judgments only measure: they resolve no label and cause no conflict.
MEASURING = ("study", "check", "repeat", "qualification")

# Added for items that ask for evidence: they reveal that a pair is relevant, so blind audits of it come first.
LAST = 1e9

# Added for pairs that an admin moves to the front or the back; a new order does not change them.
FRONT, BACK = -1e9, 1e12

# Not changed: items of a study, which come first to its participants; holes sorted by informativeness
# (below -1); and items that an admin moved to the front or the back.
REPRIORITISE = """
UPDATE corpus_item i SET priority = n.own + CASE i.reason WHEN 'evidence' THEN %(last)s ELSE 0 END
FROM (SELECT id, queue_priority(%(order)s, %(seed)s, id, query_id, uncertainty) AS own FROM corpus_pair) n
WHERE n.id = i.pair_id AND i.collection_id = %(collection)s AND i.state IN ('open', 'conflict')
  AND i.reason <> 'study' AND NOT (i.reason = 'hole' AND i.priority < -1) AND i.priority BETWEEN %(front)s AND %(back)s
  AND i.priority IS DISTINCT FROM n.own + CASE i.reason WHEN 'evidence' THEN %(last)s ELSE 0 END
"""
OVERLAP = """
UPDATE corpus_item SET overlap = GREATEST(%(overlap)s, taken, done + 1)
WHERE collection_id = %(collection)s AND state = 'open' AND reason NOT IN ('audit', 'evidence')
  AND NOT is_measuring(reason) AND overlap <> GREATEST(%(overlap)s, taken, done + 1)
"""


def next_place() -> int:
    """Return a place after all others, for rows written through the ORM."""
    (last_place,) = fetch_row("SELECT nextval('corpus_item_place')")
    return int(last_place)


@transaction.atomic
def reprioritise_tasks(collection: Collection) -> int:
    """Give unresolved items the priority of the current order; return the number of changed items."""
    values = {"order": collection.order, "seed": collection.seed, "collection": collection.pk, "last": LAST}
    count = execute(REPRIORITISE, **values, front=FRONT / 2, back=BACK / 2)
    forget_watermarks(collection)
    return count


def forget_watermarks(collection: Collection) -> None:
    """Reset the annotators' positions in the queue, since items before them may be new."""
    # The table belongs to an app above, which must not be imported: it is found through the collection's relations.
    for relation in Collection._meta.related_objects:
        fields = {field.name for field in relation.related_model._meta.get_fields()}
        if {"watermark_priority", "watermark_place"} <= fields:
            rows = relation.related_model._default_manager.filter(collection=collection)
            rows.update(watermark_priority=None, watermark_place=None)


@transaction.atomic
def change_overlap(collection: Collection, overlap: int) -> int:
    """Have `overlap` people judge each open item, or as many as have it already; return the number of changed items."""
    # An open item that has enough judgments already gets one more: it is settled by the next
    # judgment, and not by a change of settings.
    count = execute(OVERLAP, overlap=overlap, collection=collection.pk)
    forget_watermarks(collection)
    return count
