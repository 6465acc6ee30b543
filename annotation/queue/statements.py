"""The statements of the queue. Each is prepared once for a connection; `assignment` has the types of their rows.

Lock order, which keeps them free of deadlocks: own assignment, its item, what hangs on it (judgment, label, tally),
and only then the items of others, always with SKIP LOCKED.
"""

from collections.abc import Iterable

from django.db.models.expressions import RawSQL

from corpus.collections.task_order import open_items
from corpus.labels import ADJUDICATOR, PEOPLE, write_labels
from judges.campaigns.counters import ADD


def one_array(ids: Iterable[int]) -> RawSQL:
    """Return ids for `pk__in` as one parameter: thousands of parameters take longer to send than their rows."""
    return RawSQL("SELECT unnest(%s::bigint[])", [list(ids)])


# A number names an item, or an assignment by its public id: no number is both (LOWEST_PUBLIC_ID).
# FOR UPDATE of both rows: whoever decides on the item next waits for this one, and then sees its counts.
_OWN = """
SELECT a.id, a.item_id, a.token, a.state, a.judgment_id,
       i.reason, i.state AS item_state, i.pair_id, i.campaign, i.overlap, i.taken, i.done, i.arm,
       i.priority, a.first_id, f.grade AS first_grade, a.place,
       extract(epoch FROM clock_timestamp() - a.lent_at)::float8 AS held,
       1000 * extract(epoch FROM statement_timestamp() - a.served_at)::float8 AS served_ms
FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
LEFT JOIN corpus_judgment f ON f.id = a.first_id
WHERE a.membership_id = %(membership)s AND a.{named} = %(number)s
FOR UPDATE OF a, i
"""
OWN = {named: _OWN.format(named=named) for named in ("item_id", "public_id")}

# What ended an assignment: read only where another decision about it comes in. Times are no part of it.
DECIDED = """
SELECT a.state = 'skipped' AS skipped, a.skip_reason, a.flagged AND a.state = 'done' AS flagged, a.flag_note,
       j.grade, j.comment, j.spans::json AS spans, t.contribution, t.evidence, t.rating
FROM annotation_assignment a
LEFT JOIN corpus_judgment j ON j.id = %(judgment)s
LEFT JOIN LATERAL (
    SELECT contribution, evidence, rating FROM corpus_target
    WHERE item_id = a.item_id AND withdraws_id IS NULL ORDER BY version DESC LIMIT 1) t ON true
WHERE a.id = %(assignment)s
"""

# By `place`, since of a lease group the first pair is the one that the page goes on with.
OPEN = """
SELECT a.id, a.item_id, i.state AS item_state
FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
WHERE a.membership_id = %(membership)s AND a.state = 'open'
ORDER BY a.place LIMIT 1
FOR UPDATE OF a
"""

# Standing judgments of an item: those of assignments that are done. A withdrawal's assignment is open again.
STANDING = """
SELECT coalesce(array_agg(j.grade) FILTER (WHERE j.grade IS NOT NULL), '{}') AS grades,
       coalesce(bool_or(a.flagged), false) AS flagged
FROM annotation_assignment a LEFT JOIN corpus_judgment j ON j.id = a.judgment_id
WHERE a.item_id = %(item)s AND a.state = 'done' AND a.membership_id <> %(membership)s
"""


def _judged(step: str) -> str:
    return f"""judged AS (
    INSERT INTO corpus_judgment (pair_id, assessor_id, item_id, step, grade, supersedes_id, arm, guideline,
                                 milliseconds, idle_milliseconds, spans, comment)
    VALUES (%(pair)s, %(assessor)s, %(item)s, '{step}', %(grade)s, %(supersedes)s, %(arm)s,
            coalesce((SELECT max(version) FROM annotation_guideline WHERE collection_id = %(collection)s), 0),
            %(milliseconds)s, %(idle)s, %(spans)s::jsonb, %(comment)s)
    RETURNING id
)"""


# The blind vote of the reveal arm. The lease goes on under a new token, also for a late vote on a returned lease.
FIRST = f"""
WITH {_judged("first")}, counted AS (
    UPDATE corpus_item SET taken = taken + %(retaken)s::int WHERE id = %(item)s AND %(retaken)s::int > 0
)
UPDATE annotation_assignment
SET state = 'open', ended_at = NULL, first_id = (SELECT id FROM judged), token = %(token)s,
    lease_until = now() + make_interval(mins => %(minutes)s), served_at = clock_timestamp()
WHERE id = %(assignment)s
"""

# Never over a newer resolved item of the same pair: its label rests on the judgments given later.
_LABEL = f"""
    SELECT %(pair)s::bigint, NULL::bigint, %(label)s::int, '{PEOPLE}'
    WHERE %(label)s::int IS NOT NULL AND NOT EXISTS (
        SELECT FROM corpus_item newer
        WHERE newer.pair_id = %(pair)s AND newer.id > %(item)s AND newer.state = 'settled'
          AND newer.reason <> 'evidence' AND newer.reason <> ALL (%(measuring)s))"""
# What a campaign counts when one of its items is settled.
COUNTED = "SELECT %(campaign)s::bigint, %(shard)s::int, %(tally)s::text, 1 WHERE %(campaign)s::bigint IS NOT NULL"

# An item that a bulk act reserved for a person is anybody's again as soon as they did their part.
_RESERVED = "reserved = reserved AND reason IN ('study', 'repeat')"

# One statement for everything that a judgment changes. `taken` goes up for a late judgment on a returned lease.
SETTLE = f"""
WITH {_judged("final")}, ended AS (
    UPDATE annotation_assignment
    SET state = 'done', ended_at = now(), judgment_id = (SELECT id FROM judged), draft = NULL
    WHERE id = %(assignment)s
), counted AS (
    UPDATE corpus_item
    SET done = done + 1, taken = taken + %(retaken)s::int, state = %(state)s::text, {_RESERVED},
        settled_at = CASE WHEN %(state)s::text = 'settled' THEN now() END
    WHERE id = %(item)s
), labelled AS (
    {write_labels(_LABEL, unless=(ADJUDICATOR,))}
), tallied AS (
    {ADD.format(rows=f"{COUNTED} AND %(label)s::int IS NOT NULL")}
)
SELECT id FROM judged
"""

# An item that asks for texts and not for a grade: what was written stands in corpus_target.
FINISH = f"""
WITH ended AS (
    UPDATE annotation_assignment SET state = 'done', ended_at = now(), draft = NULL WHERE id = %(assignment)s
), tallied AS (
    {ADD.format(rows=COUNTED)}
)
UPDATE corpus_item
SET done = done + 1, taken = taken + %(retaken)s::int, state = 'settled', settled_at = now(), {_RESERVED}
WHERE id = %(item)s
"""

# Skipped, flagged or returned without a grade. A skip or a return gives the item back at a new place.
END = f"""
WITH ended AS (
    UPDATE annotation_assignment
    SET state = %(ended)s, ended_at = now(), skip_reason = %(reason)s, flagged = %(flagged)s, flag_note = %(note)s
    WHERE id = %(assignment)s
)
UPDATE corpus_item
SET taken = taken - %(given_back)s::int, state = %(state)s, {_RESERVED},
    place = CASE WHEN %(given_back)s::int > 0 THEN nextval('corpus_item_place') ELSE place END
WHERE id = %(item)s
"""

# Leases that ran out, of anybody but the one who asks; whatever is being worked on at this moment is left alone.
EXPIRE = """
WITH late AS (
    SELECT a.id, a.item_id FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
    WHERE a.state = 'open' AND a.lease_until <= now() AND a.membership_id <> %(membership)s
    ORDER BY a.lease_until LIMIT 20
    FOR UPDATE OF a, i SKIP LOCKED
), ended AS (
    UPDATE annotation_assignment SET state = 'returned', ended_at = now() WHERE id IN (SELECT id FROM late)
)
UPDATE corpus_item SET taken = taken - n, place = nextval('corpus_item_place')
FROM (SELECT item_id, count(*) AS n FROM late GROUP BY item_id) late WHERE corpus_item.id = late.item_id
"""

# Of a group all: whoever works on one has the others on the same page.
RENEW = """
UPDATE annotation_assignment SET lease_until = now() + make_interval(mins => %(minutes)s)
WHERE membership_id = %(membership)s AND state = 'open'
"""

DRAFT = """
UPDATE annotation_assignment SET draft = %(draft)s::jsonb
WHERE membership_id = %(membership)s AND item_id = %(item)s AND token = %(token)s AND state IN ('open', 'returned')
RETURNING id
"""


# An arm is drawn once for an item, by the first member who gets it: two members of one item read the same.
_MAY_DRAW = "i.arm = '' AND i.taken = 0 AND i.reason NOT IN ('audit', 'evidence')"

# A check, or an item of the qualification test: one that this member never had, of a pair that they never had. All
# members share these items, each gets them in an order of their own.
_STANDING = f"""
    SELECT i.id, i.priority, i.place, {_MAY_DRAW} AS draws, false AS queued
    FROM corpus_item i
    WHERE i.collection_id = %(collection)s AND i.state = 'standing' AND i.reason = %(kind)s AND i.taken < i.overlap
      AND (i.reason = 'check' OR i.seq = %(trial)s)
      AND NOT EXISTS (
        SELECT FROM corpus_item other JOIN annotation_assignment a ON a.item_id = other.id
        WHERE other.pair_id = i.pair_id AND other.seq >= i.seq AND a.membership_id = %(membership)s
          AND (other.id <> i.id OR a.state <> 'returned'))
    ORDER BY i.priority, hashint8extended(i.id, %(membership)s) LIMIT 1
    FOR UPDATE OF i SKIP LOCKED
"""

# A pair that this member judged some time ago, once more, and just as it was then.
_JUDGED = """
    SELECT i.collection_id AS collection, i.pair_id AS pair, NULL::bigint AS campaign, 'repeat' AS reason, i.priority,
           1 AS overlap, coalesce(nullif(i.shown_as, ''), i.reason) AS shown_as, i.arm, i.turns, true AS reserved
    FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
    WHERE a.membership_id = %(membership)s AND a.state = 'done' AND NOT a.flagged AND a.judgment_id IS NOT NULL
      AND a.number BETWEEN %(lent)s::int - 500 AND %(lent)s::int - %(separate)s::int
      AND i.reason NOT IN ('check', 'repeat', 'qualification', 'evidence', 'study')
      AND NOT EXISTS (
        SELECT FROM corpus_item r JOIN annotation_assignment mine ON mine.item_id = r.id
        WHERE r.pair_id = i.pair_id AND r.reason = 'repeat' AND mine.membership_id = %(membership)s)
    ORDER BY hashint8extended(i.id, %(membership)s) LIMIT 1
"""
_REPEAT = f"""
    {open_items(_JUDGED, taken=1, also=("shown_as", "arm", "turns", "reserved"))}
    RETURNING id, priority, place, false AS draws, false AS queued
"""


def claim_statement(*, above_watermark: bool, again: bool = False, before: str = "") -> str:
    """Return the SQL that assigns the first item that is new to the member; `again`: one whose lease they let run out.

    A lease that was given back by an undo, and has time left, counts as new: it was never judged. The member's own
    assignment is a scalar query, because as NOT EXISTS it becomes a join, which reads all that the member ever judged.
    An item that nobody has yet, and without an arm, gets the one that comes next for this member
    (corpus.collections.arm_allocation). `before`: what is assigned in place of the queue's item, a check or a repeat.
    """
    above = "AND (i.priority, i.place) > (%(priority)s, %(place)s)" if above_watermark else ""
    back = "TRUE" if again else "a.lease_until > now()"
    instead = {"": "", "check": f"instead AS ({_STANDING}),", "repeat": f"instead AS ({_REPEAT}),"}[before]
    unless = "AND NOT EXISTS (SELECT FROM instead)" if before else ""
    queue = f"""
    SELECT i.id, i.priority, i.place, {_MAY_DRAW} AS draws, true AS queued
    FROM corpus_item i
    WHERE i.collection_id = %(collection)s AND i.state = 'open' AND i.taken < i.overlap {above} {unless}
      AND (SELECT a.state = 'returned' AND (i.reserved OR {back}) FROM annotation_assignment a
           WHERE a.item_id = i.id AND a.membership_id = %(membership)s) IS NOT FALSE
      AND CASE WHEN i.reserved THEN (SELECT true FROM annotation_reservedfor r
               WHERE r.item_id = i.id AND r.membership_id = %(membership)s) ELSE true END
    ORDER BY i.priority, i.place LIMIT 1
    FOR UPDATE OF i SKIP LOCKED
    """
    found = "SELECT * FROM instead UNION ALL SELECT * FROM queue" if before else "SELECT * FROM queue"
    return f"""
WITH {instead} queue AS ({queue}), found AS ({found}),
{_assign_clause(counts=True, keeps=before == "repeat")}
"""


def _assign_clause(*, counts: bool, keeps: bool = False) -> str:
    """Return SQL that assigns the item in `found`. `counts`: it adds to the member's work; `keeps`: for nobody else."""
    kept = """reserved AS (
    INSERT INTO annotation_reservedfor (item_id, membership_id)
    SELECT id, %(membership)s FROM instead
),"""
    return f"""{kept if keeps else ""} taken AS (
    UPDATE corpus_item SET taken = taken + 1, arm = CASE WHEN found.draws THEN %(arm)s::text ELSE arm END
    FROM found WHERE corpus_item.id = found.id
), marked AS (
    UPDATE annotation_membership
    SET watermark_priority = CASE WHEN found.queued THEN found.priority ELSE watermark_priority END,
        watermark_place = CASE WHEN found.queued THEN found.place ELSE watermark_place END,
        lent = lent + {int(counts)}, arms_drawn = arms_drawn + (found.draws AND %(arm)s::text <> '')::int
    FROM found WHERE annotation_membership.id = %(membership)s
    RETURNING lent
)
INSERT INTO annotation_assignment (item_id, membership_id, state, token, lease_until, skip_reason, flagged, flag_note,
                                   number, served_at)
SELECT id, %(membership)s, 'open', %(token)s, now() + make_interval(mins => %(minutes)s), '', false, '',
       {"lent - 1" if counts else "NULL"}, clock_timestamp()
FROM found, marked
ON CONFLICT (item_id, membership_id) DO UPDATE
SET state = 'open', token = excluded.token, lent_at = now(), lease_until = excluded.lease_until, ended_at = NULL,
    number = excluded.number, place = 0, served_at = excluded.served_at
RETURNING id"""


GROUP_SIZE = 20  # Pairs of one query that are assigned together, at most.

# Of reserved items only those that a bulk act reserved for this member.
_GROUPED = """{item}.reason <> 'evidence' AND CASE WHEN {item}.reserved THEN {item}.reason NOT IN ('study', 'repeat')
           AND EXISTS (SELECT FROM annotation_reservedfor r
                       WHERE r.item_id = {item}.id AND r.membership_id = %(membership)s) ELSE true END"""

# What else waits of the query of a lease that was just made, each pair once. The items that draw an arm get the next
# ones of this member's sequence, which the lease itself may have moved on.
GROUP = f"""
WITH first AS MATERIALIZED (
    SELECT i.pair_id, p.query_id, m.arms_drawn - %(drawn)s::int AS moved
    FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id JOIN corpus_pair p ON p.id = i.pair_id
    JOIN annotation_membership m ON m.id = a.membership_id
    WHERE a.id = %(assignment)s AND i.reason NOT IN ('evidence', 'qualification')
), more AS MATERIALIZED (
    SELECT i.id, {_MAY_DRAW} AS draws, first.moved
    FROM first JOIN corpus_pair p ON p.query_id = first.query_id AND p.id <> first.pair_id
    JOIN corpus_item i ON i.pair_id = p.id
    WHERE i.collection_id = %(collection)s AND i.state = 'open' AND i.taken < i.overlap
      AND {_GROUPED.format(item="i")}
      AND NOT EXISTS (
        SELECT FROM corpus_item other JOIN annotation_assignment a ON a.item_id = other.id
        WHERE other.pair_id = i.pair_id AND a.membership_id = %(membership)s
          AND NOT (other.id = i.id AND a.state = 'returned'))
      AND NOT EXISTS (
        SELECT FROM corpus_item other
        WHERE other.pair_id = i.pair_id AND other.id < i.id AND other.state = 'open' AND other.taken < other.overlap
          AND {_GROUPED.format(item="other")})
    ORDER BY hashint8extended(i.id, %(membership)s) LIMIT {GROUP_SIZE - 1}
    FOR UPDATE OF i SKIP LOCKED
), placed AS (
    SELECT id, draws, row_number() OVER w::int AS place,
           CASE WHEN draws THEN (%(arms)s::text[])[moved + sum(draws::int) OVER w] END AS arm
    FROM more WINDOW w AS (ORDER BY id)
), taken AS (
    UPDATE corpus_item SET taken = taken + 1, arm = coalesce(placed.arm, corpus_item.arm)
    FROM placed WHERE corpus_item.id = placed.id
), marked AS (
    UPDATE annotation_membership SET lent = lent + n, arms_drawn = arms_drawn + drawn
    FROM (SELECT count(*) AS n, count(*) FILTER (WHERE arm <> '') AS drawn FROM placed) counted
    WHERE id = %(membership)s AND n > 0
    RETURNING lent - n AS before
)
INSERT INTO annotation_assignment (item_id, membership_id, state, token, lease_until, skip_reason, flagged, flag_note,
                                   number, place, served_at)
SELECT id, %(membership)s, 'open', (%(tokens)s::text[])[place], now() + make_interval(mins => %(minutes)s), '', false,
       '', before + place - 1, place, clock_timestamp()
FROM placed, marked
ON CONFLICT (item_id, membership_id) DO UPDATE
SET state = 'open', token = excluded.token, lent_at = now(), lease_until = excluded.lease_until, ended_at = NULL,
    number = excluded.number, place = excluded.place, served_at = excluded.served_at
"""

# Counted from assignments, since a whole query can pass over the places that were drawn for checks.
CHECKS_LENT = """
SELECT count(*) AS n FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
WHERE a.membership_id = %(membership)s AND a.number >= %(begin)s AND i.reason = 'check'
"""

CLAIM_AGAIN = claim_statement(above_watermark=False, again=True)
CLAIM_TRIAL = f"WITH found AS ({_STANDING}), {_assign_clause(counts=False)}"

# By: above the watermark, what stands in place of the queue's item.
CLAIM = {
    (above, before): claim_statement(above_watermark=above, before=before)
    for above in (True, False)
    for before in ("", "check", "repeat")
}
