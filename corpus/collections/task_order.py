"""The queue's order: an item's priority (smaller first), its place among equals."""

from hashlib import sha256

from django.db import transaction

from corpus.models import Collection
from store.sql import execute, fetch_row


def pair_priority(order: str, seed: int, *, pair_id: int, query_id: int, uncertainty: float) -> float:
    """Return the priority of a pair's item under the collection's order, as queue_priority does in SQL. Pure."""
    if order == Collection.Order.QUERY:
        return float(query_id)
    if order == Collection.Order.RANDOM:
        digest = sha256(f"{seed}:{pair_id}".encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48
    return -uncertainty


# Reasons of items whose judgments measure: they come to no label and to no conflict.
MEASURING = ("study", "check", "repeat", "qualification")

# Added for items that ask for texts: they say that a pair is relevant, so whoever audits it blind gets that first.
LAST = 1e9

# Added where an admin wants a pair first or last, whatever the order; a new order leaves such items where they are.
FRONT, BACK = -1e9, 1e12

# Items of a study come first to those who take part, whatever the order; holes that were sent in
# the order of what they could settle (below -1) keep that order; and what an admin moved to the
# front or the back stays there.
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
    """Return a place behind all others, for rows written through the ORM."""
    (place,) = fetch_row("SELECT nextval('corpus_item_place')")
    return int(place)


@transaction.atomic
def reprioritise_tasks(collection: Collection) -> int:
    """Give unresolved items the priority of the present order; return the number."""
    values = {"order": collection.order, "seed": collection.seed, "collection": collection.pk, "last": LAST}
    changed = execute(REPRIORITISE, **values, front=FRONT / 2, back=BACK / 2)
    forget_watermarks(collection)
    return changed


def forget_watermarks(collection: Collection) -> None:
    """Forget how far annotators are in the queue: all may be new to them again."""
    # The table is of a layer above, which this one must not import: it is found through the collection's relations.
    for relation in Collection._meta.related_objects:
        fields = {field.name for field in relation.related_model._meta.get_fields()}
        if {"watermark_priority", "watermark_place"} <= fields:
            rows = relation.related_model._default_manager.filter(collection=collection)
            rows.update(watermark_priority=None, watermark_place=None)


@transaction.atomic
def change_overlap(collection: Collection, overlap: int) -> int:
    """Ask `overlap` people for open items, at least those who took it; the number."""
    # An open item whose judgments already reach the new number keeps one more place open for the
    # deciding person: it settles at the next judgment, not by a change of settings.
    changed = execute(OVERLAP, overlap=overlap, collection=collection.pk)
    forget_watermarks(collection)
    return changed
