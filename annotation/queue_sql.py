"""The statements of the queue. Each is prepared once for a connection; rows come back as dictionaries.

Lock order, which keeps them free of deadlocks: own assignment, its item, what hangs on it (judgment, label, tally),
and only then the items of others, always with SKIP LOCKED.
"""

OWN = """
SELECT a.id, a.item_id, a.token, a.state, a.judgment_id, a.flagged, a.ended_at, a.lease_until <= now() AS late,
       i.reason, i.state AS item_state, i.pair_id, i.campaign, i.overlap, i.taken, i.done, i.arm,
       a.first_id, f.grade AS first_grade
FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
LEFT JOIN corpus_judgment f ON f.id = a.first_id
WHERE a.membership_id = %(membership)s AND a.item_id = %(item)s
FOR UPDATE OF a, i
"""

OPEN = """
SELECT a.id, a.item_id, a.lease_until <= now() AS late, i.state AS item_state
FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
WHERE a.membership_id = %(membership)s AND a.state = 'open'
FOR UPDATE OF a
"""

# Standing judgments of an item: those of assignments that are done. A withdrawal's assignment is open again.
STANDING = """
SELECT coalesce(array_agg(j.grade) FILTER (WHERE j.grade IS NOT NULL), '{}') AS grades,
       coalesce(bool_or(a.flagged), false) AS flagged
FROM annotation_assignment a LEFT JOIN corpus_judgment j ON j.id = a.judgment_id
WHERE a.item_id = %(item)s AND a.state = 'done' AND a.membership_id <> %(membership)s
"""

# The blind vote of the reveal arm. The lease goes on under a new token, also for a late vote on a returned lease.
FIRST = """
WITH judged AS (
    INSERT INTO corpus_judgment (pair_id, assessor_id, item_id, step, grade, supersedes_id, arm, guideline,
                                 milliseconds, comment)
    VALUES (%(pair)s, %(assessor)s, %(item)s, 'first', %(grade)s, %(supersedes)s, %(arm)s,
            coalesce((SELECT max(version) FROM annotation_guideline WHERE collection_id = %(collection)s), 0),
            %(milliseconds)s, %(comment)s)
    RETURNING id
), counted AS (
    UPDATE corpus_item SET taken = taken + %(retaken)s::int WHERE id = %(item)s AND %(retaken)s::int > 0
)
UPDATE annotation_assignment
SET state = 'open', ended_at = NULL, first_id = (SELECT id FROM judged), token = %(token)s,
    lease_until = now() + make_interval(mins => %(minutes)s)
WHERE id = %(assignment)s
"""

# One statement for everything that a judgment changes. `taken` goes up for a late judgment on a returned lease.
SETTLE = """
WITH judged AS (
    INSERT INTO corpus_judgment (pair_id, assessor_id, item_id, step, grade, supersedes_id, arm, guideline,
                                 milliseconds, comment)
    VALUES (%(pair)s, %(assessor)s, %(item)s, 'final', %(grade)s, %(supersedes)s, %(arm)s,
            coalesce((SELECT max(version) FROM annotation_guideline WHERE collection_id = %(collection)s), 0),
            %(milliseconds)s, %(comment)s)
    RETURNING id
), ended AS (
    UPDATE annotation_assignment
    SET state = 'done', ended_at = now(), judgment_id = (SELECT id FROM judged)
    WHERE id = %(assignment)s
), counted AS (
    UPDATE corpus_item
    SET done = done + 1, taken = taken + %(retaken)s::int, state = %(state)s::text,
        settled_at = CASE WHEN %(state)s::text = 'settled' THEN now() END
    WHERE id = %(item)s
), labelled AS (
    INSERT INTO corpus_label (pair_id, grade, origin)
    SELECT %(pair)s, %(label)s::int, 'people'
    WHERE %(label)s::int IS NOT NULL AND NOT EXISTS (
        SELECT FROM corpus_item newer
        WHERE newer.pair_id = %(pair)s AND newer.id > %(item)s AND newer.state = 'settled'
          AND newer.reason <> 'evidence' AND newer.reason <> ALL (%(measuring)s))
    ON CONFLICT (pair_id, aspect_id) DO UPDATE
    SET grade = excluded.grade, origin = excluded.origin, updated_at = now()
    WHERE corpus_label.origin <> 'adjudicator'
), tallied AS (
    INSERT INTO judges_tally (campaign_id, shard, key, value)
    SELECT %(campaign)s, %(shard)s, %(tally)s, 1
    WHERE %(label)s::int IS NOT NULL AND %(campaign)s::bigint IS NOT NULL
    ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = judges_tally.value + 1
)
SELECT id FROM judged
"""

# An item that asks for texts and not for a grade: what was written stands in corpus_target.
FINISH = """
WITH ended AS (
    UPDATE annotation_assignment SET state = 'done', ended_at = now() WHERE id = %(assignment)s
), tallied AS (
    INSERT INTO judges_tally (campaign_id, shard, key, value)
    SELECT %(campaign)s, %(shard)s, %(tally)s, 1 WHERE %(campaign)s::bigint IS NOT NULL
    ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = judges_tally.value + 1
)
UPDATE corpus_item
SET done = done + 1, taken = taken + %(retaken)s::int, state = 'settled', settled_at = now()
WHERE id = %(item)s
"""

# Skipped, flagged or returned without a grade. A skip or a return gives the item back at a new place.
END = """
WITH ended AS (
    UPDATE annotation_assignment
    SET state = %(ended)s, ended_at = now(), skip_reason = %(reason)s, flagged = %(flagged)s, flag_note = %(note)s
    WHERE id = %(assignment)s
)
UPDATE corpus_item
SET taken = taken - %(given_back)s::int, state = %(state)s,
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

RENEW = """
UPDATE annotation_assignment SET lease_until = now() + make_interval(mins => %(minutes)s) WHERE id = %(assignment)s
"""


def claim(*, above_watermark: bool, again: bool = False) -> str:
    """Lend the first item that is new to the member; `again`: one whose lease they let run out.

    A lease that was given back by an undo, and has time left, counts as new: it was never judged. The member's own
    assignment is a scalar query, because as NOT EXISTS it becomes a join, which reads all that the member ever judged.
    An item that nobody has yet, and without an arm, gets the one that comes next for this member (corpus.arms).
    """
    above = "AND (i.priority, i.place) > (%(priority)s, %(place)s)" if above_watermark else ""
    back = "TRUE" if again else "a.lease_until > now()"
    return f"""
WITH found AS (
    SELECT i.id, i.priority, i.place, i.arm = '' AND i.taken = 0 AND i.reason NOT IN ('audit', 'evidence') AS draws
    FROM corpus_item i
    WHERE i.collection_id = %(collection)s AND i.state = 'open' AND i.taken < i.overlap {above}
      AND (SELECT a.state = 'returned' AND {back} FROM annotation_assignment a
           WHERE a.item_id = i.id AND a.membership_id = %(membership)s) IS NOT FALSE
      AND CASE WHEN i.reserved THEN (SELECT true FROM annotation_reservedfor r
               WHERE r.item_id = i.id AND r.membership_id = %(membership)s) ELSE true END
    ORDER BY i.priority, i.place LIMIT 1
    FOR UPDATE OF i SKIP LOCKED
), taken AS (
    UPDATE corpus_item SET taken = taken + 1, arm = CASE WHEN found.draws THEN %(arm)s::text ELSE arm END
    FROM found WHERE corpus_item.id = found.id
), marked AS (
    UPDATE annotation_membership
    SET watermark_priority = found.priority, watermark_place = found.place,
        arms_drawn = arms_drawn + (found.draws AND %(arm)s::text <> '')::int
    FROM found WHERE annotation_membership.id = %(membership)s
)
INSERT INTO annotation_assignment (item_id, membership_id, state, token, lease_until, skip_reason, flagged, flag_note)
SELECT id, %(membership)s, 'open', %(token)s, now() + make_interval(mins => %(minutes)s), '', false, '' FROM found
ON CONFLICT (item_id, membership_id) DO UPDATE
SET state = 'open', token = excluded.token, lent_at = now(), lease_until = excluded.lease_until, ended_at = NULL
RETURNING id
"""


CLAIM_ABOVE = claim(above_watermark=True)
CLAIM_ANY = claim(above_watermark=False)
CLAIM_AGAIN = claim(above_watermark=False, again=True)
