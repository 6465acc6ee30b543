"""Pairs are taken from whoever has them and go to anyone, or are reserved for one member (ReservedFor).

A pair is never reserved for somebody who met it already. It is anybody's again when the member judged, skipped or
flagged it, was paused or left (annotation.queue), or by undo.
"""

from collections.abc import Iterable
from typing import Any

from django.db import connection
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.bulk.queue_acts import WAITING, fetch_rows
from annotation.models import Membership
from annotation.models.pair_table import BulkAct
from annotation.queue.annotators import closed, needs_qualification
from annotation.queue.assignment import TAKEN_AWAY
from corpus.collections.task_order import FRONT, PRIORITY_SQL, forget_watermarks
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Collection

ANYONE = "anyone"
_SELECTED = f"i.collection_id = %(collection)s AND i.pair_id = ANY(%(pairs)s) AND {WAITING}"
_IS_RESERVED = "i.reserved AND EXISTS (SELECT FROM annotation_reservedfor r WHERE r.item_id = i.id)"
# Places that somebody could still take. What is reserved for nobody is held back while a study runs.
_FREE = f"{_SELECTED} AND i.state = 'open' AND (NOT i.reserved OR {_IS_RESERVED})"
# The member holds the pair, judged or skipped it, or judged it before it came here.
_MET = """(EXISTS (
    SELECT FROM corpus_item o JOIN annotation_assignment mine ON mine.item_id = o.id
    WHERE o.pair_id = i.pair_id AND mine.membership_id = %(member)s AND mine.state <> 'returned')
  OR EXISTS (
    SELECT FROM corpus_judgment j JOIN annotation_membership m ON m.assessor_id = j.assessor_id
    WHERE j.pair_id = i.pair_id AND j.aspect_id IS NULL AND m.id = %(member)s))"""

_TAKEN = f"'{TAKEN_AWAY}' || md5(random()::text || id)"
# The time of the lease ends, too: whoever held the pair gets it again only when nothing else is left for them. Its
# token is another, and so is that of a lease that ran out before: what a page of former holders sends is not the label.
_RETURN = f"""
WITH leases AS MATERIALIZED (
    SELECT a.id, a.item_id, a.state, i.pair_id
    FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
    WHERE a.state IN ('open', 'returned') AND a.membership_id IS DISTINCT FROM %(member)s::bigint AND {_SELECTED}
      AND (%(member)s::bigint IS NULL OR NOT {_MET})
    ORDER BY a.id FOR UPDATE OF a),
held AS (SELECT id, item_id, pair_id FROM leases WHERE state = 'open'),
locked AS MATERIALIZED (
    SELECT id FROM corpus_item WHERE id IN (SELECT item_id FROM held) ORDER BY id FOR UPDATE),
ended AS (
    UPDATE annotation_assignment SET state = 'returned', ended_at = now(), lease_until = now(), token = {_TAKEN}
    WHERE id IN (SELECT id FROM held)),
voided AS (
    UPDATE annotation_assignment SET token = {_TAKEN} WHERE id IN (SELECT id FROM leases WHERE state = 'returned')),
freed AS (
    UPDATE corpus_item SET taken = taken - n, place = nextval('corpus_item_place')
    FROM (SELECT item_id, count(*) AS n FROM held GROUP BY item_id) counted
    WHERE corpus_item.id = counted.item_id AND corpus_item.id IN (SELECT id FROM locked))
SELECT DISTINCT pair_id FROM held"""

# One task of each pair: the same person shall not judge a pair twice.
_RESERVE = f"""
WITH found AS MATERIALIZED (
    SELECT i.id, i.priority AS before FROM corpus_item i
    WHERE {_FREE} AND i.taken < i.overlap AND NOT {_MET} AND i.id = (
        SELECT o.id FROM corpus_item o
        WHERE o.pair_id = i.pair_id AND o.state = 'open' AND o.taken < o.overlap AND o.reason <> ALL (%(measuring)s)
        ORDER BY o.reason = 'evidence', o.id LIMIT 1)
    ORDER BY i.id FOR UPDATE),
forgotten AS (
    DELETE FROM annotation_reservedfor WHERE item_id IN (SELECT id FROM found) AND membership_id <> %(member)s),
named AS (
    INSERT INTO annotation_reservedfor (item_id, membership_id) SELECT id, %(member)s FROM found
    ON CONFLICT DO NOTHING)
UPDATE corpus_item i SET reserved = true, priority = {FRONT} + {PRIORITY_SQL.format(order="c.order", seed="c.seed")}
FROM found, corpus_pair p, corpus_collection c
WHERE i.id = found.id AND p.id = i.pair_id AND c.id = %(collection)s
RETURNING i.id, found.before, i.priority"""
_RELEASE = f"""
WITH found AS MATERIALIZED (
    SELECT i.id, i.pair_id FROM corpus_item i WHERE {_SELECTED} AND {_IS_RESERVED} ORDER BY i.id FOR UPDATE),
forgotten AS (DELETE FROM annotation_reservedfor WHERE item_id IN (SELECT id FROM found)),
freed AS (UPDATE corpus_item SET reserved = false WHERE id IN (SELECT id FROM found))
SELECT DISTINCT pair_id FROM found"""
_UNDO = """
WITH found AS MATERIALIZED (
    SELECT i.id, i.pair_id, CASE WHEN i.priority = moved.after THEN moved.before ELSE i.priority END AS priority
    FROM unnest(%(items)s::bigint[], %(before)s::float8[], %(after)s::float8[]) AS moved (id, before, after)
    JOIN corpus_item i ON i.id = moved.id AND i.state = 'open' AND i.reserved
    JOIN annotation_reservedfor r ON r.item_id = i.id AND r.membership_id = %(member)s
    ORDER BY i.id FOR UPDATE OF i),
forgotten AS (DELETE FROM annotation_reservedfor WHERE item_id IN (SELECT id FROM found))
UPDATE corpus_item i SET reserved = false, priority = found.priority FROM found WHERE i.id = found.id"""

_COUNT = f"""
SELECT count(DISTINCT i.pair_id) FILTER (WHERE {_FREE}),
       count(DISTINCT i.pair_id) FILTER (WHERE {_IS_RESERVED} OR EXISTS (
           SELECT FROM annotation_assignment a WHERE a.item_id = i.id AND a.state = 'open'))
FROM corpus_item i WHERE {_SELECTED}"""
# Of each member, how many of the pairs they met.
_COUNT_MET = f"""
WITH free AS MATERIALIZED (SELECT DISTINCT i.pair_id FROM corpus_item i WHERE {_FREE}),
met AS (
    SELECT a.membership_id AS member, i.pair_id FROM free JOIN corpus_item i ON i.pair_id = free.pair_id
    JOIN annotation_assignment a ON a.item_id = i.id WHERE a.state <> 'returned'
    UNION
    SELECT m.id, j.pair_id FROM free JOIN corpus_judgment j ON j.pair_id = free.pair_id
    JOIN annotation_membership m ON m.assessor_id = j.assessor_id WHERE j.aspect_id IS NULL)
SELECT member, count(*) FROM met GROUP BY member"""


def list_choices(collection: Collection, pairs: list[int]) -> dict[str, tuple[str, int]]:
    """Return to whom the pairs can go: by the option's value its title, and how many pairs it changes."""
    [(free, held)] = fetch_rows(_COUNT, collection, pairs)
    met = dict(fetch_rows(_COUNT_MET, collection, pairs))
    members = Membership.objects.filter(collection=collection).select_related("user", "collection")
    people = {
        str(one.pk): (one.user.username, free - met.get(one.pk, 0))
        for one in members.order_by("user__username")
        if may_get_pairs(one)
    }
    return {ANYONE: (_("anyone"), held)} | {key: found for key, found in people.items() if found[1]}


def name_recipients(acts: Iterable[BulkAct]) -> dict[int, str]:
    """Return, by the number of an act that named somebody, to whom its pairs went."""
    chosen = {act.pk: act.option for act in acts if act.kind == BulkAct.Kind.REASSIGN}
    members = Membership.objects.filter(pk__in=[option for option in chosen.values() if option.isdecimal()])
    names = {str(pk): name for pk, name in members.values_list("pk", "user__username")} | {ANYONE: _("anyone")}
    said = _("to %(who)s")
    return {act: said % {"who": names[option]} for act, option in chosen.items() if option in names}


def may_get_pairs(member: Membership) -> bool:
    """Return whether pairs can be reserved for a member, who must be active, not paused and, where asked, qualified."""
    active = member.is_active and member.user.is_active
    return active and closed(member) in ("", "consent") and not needs_qualification(member)


def describe_choices(act: BulkAct) -> dict[str, str]:
    """Return the options of an act's page."""
    found = list_choices(act.collection, act.pairs)
    said = {key: ngettext("%(who)s (%(n)s pair)", "%(who)s (%(n)s pairs)", n) for key, (_who, n) in found.items()}
    return {key: said[key] % {"who": who, "n": f"{n:,}"} for key, (who, n) in found.items()}


def reassign_pairs(act: BulkAct) -> tuple[int, dict[str, Any]]:
    """Reassign pairs: release them from their holders, to anyone or to the member that the option names.

    Raises BadInput.
    """
    if act.option == ANYONE:
        return _return_pairs(act.collection, act.pairs), {}
    member = int(act.option)
    fetch_rows(_RETURN, act.collection, act.pairs, member=member)
    rows = fetch_rows(_RESERVE, act.collection, act.pairs, member=member)
    # Locked after the tasks, as a claim does; whoever pauses or removes the member now waits, and then releases these.
    found = hold(Membership.objects.select_related("user", "collection"), member)
    if not may_get_pairs(found):
        raise BadInput(_("%(user)s cannot get pairs now. Choose someone else.") % {"user": found.user})
    forget_watermarks(act.collection)
    return len(rows), {"moved": rows, "member": member}


def _return_pairs(collection: Collection, pairs: list[int]) -> int:
    returned = fetch_rows(_RETURN, collection, pairs, member=None)
    released = fetch_rows(_RELEASE, collection, pairs)
    forget_watermarks(collection)
    return len({*returned, *released})


def release_pairs(collection: Collection, changes: dict[str, Any]) -> int:
    """Release the pairs that an act still reserves; return their number."""
    moved = changes["moved"]
    columns = {name: [row[place] for row in moved] for place, name in enumerate(("items", "before", "after"))}
    with connection.cursor() as cursor:
        cursor.execute(_UNDO, columns | {"member": changes["member"]})
        count = int(cursor.rowcount)
    forget_watermarks(collection)
    return count
