-- Assign the member the first item of the queue that is new to them, above their watermark (priority, place). A lease
-- that was given back by an undo and has time left counts as new: it was never judged; `again`: also one that ran out.
-- Lock order: the item (SKIP LOCKED), the membership, the assignment.
WITH found AS (
    -- The member's own assignment is a scalar query, because as NOT EXISTS it becomes a join, which reads all that the
    -- member ever judged. An item that nobody has yet, and without an arm, gets the one that comes next for this
    -- member (corpus.collections.arm_allocation): two members of one item read the same.
    SELECT i.id, i.priority, i.place,
           i.arm = '' AND i.taken = 0 AND i.reason NOT IN ('audit', 'evidence') AS draws
    FROM corpus_item i
    WHERE i.collection_id = :collection AND i.state = 'open' AND i.taken < i.overlap
      AND (i.priority, i.place) > (:priority, :place)
      AND (SELECT a.state = 'returned' AND (i.reserved OR :again OR a.lease_until > now()) FROM annotation_assignment a
           WHERE a.item_id = i.id AND a.membership_id = :membership) IS NOT FALSE
      AND CASE WHEN i.reserved THEN (SELECT true FROM annotation_reservedfor r
               WHERE r.item_id = i.id AND r.membership_id = :membership) ELSE true END
    ORDER BY i.priority, i.place LIMIT 1
    FOR UPDATE OF i SKIP LOCKED
), taken AS (
    UPDATE corpus_item SET taken = taken + 1, arm = CASE WHEN found.draws THEN :arm::text ELSE arm END
    FROM found WHERE corpus_item.id = found.id
), marked AS (
    UPDATE annotation_membership
    SET watermark_priority = found.priority, watermark_place = found.place, lent = lent + 1,
        arms_drawn = arms_drawn + (found.draws AND :arm::text <> '')::int
    FROM found WHERE annotation_membership.id = :membership
    RETURNING lent
)
INSERT INTO annotation_assignment (item_id, membership_id, state, token, lease_until, skip_reason, flagged, flag_note,
                                   number, served_at)
SELECT id, :membership, 'open', :token, now() + make_interval(mins => :minutes), '', false, '', lent - 1,
       clock_timestamp()
FROM found, marked
ON CONFLICT (item_id, membership_id) DO UPDATE
SET state = 'open', token = excluded.token, lent_at = now(), lease_until = excluded.lease_until, ended_at = NULL,
    number = excluded.number, place = 0, served_at = excluded.served_at
RETURNING id;
