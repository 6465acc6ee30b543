-- Assign the member the first item of the queue that is new to them, above their watermark (priority, place). An item
-- whose lease an undo returned with time left counts as new; with `again` also one whose lease ran out.
-- Lock order: the item (SKIP LOCKED), the membership, the assignment.
WITH candidate AS (
    -- The member's own assignment is a scalar query, because NOT EXISTS would become a join that reads everything the
    -- member ever judged. An item without an arm that nobody has yet gets this member's next arm
    -- (corpus.collections.arm_allocation), so that all members of an item have the same arm.
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
    UPDATE corpus_item SET taken = taken + 1, arm = CASE WHEN candidate.draws THEN :arm::text ELSE arm END
    FROM candidate WHERE corpus_item.id = candidate.id
), marked AS (
    UPDATE annotation_membership
    SET watermark_priority = candidate.priority, watermark_place = candidate.place, lent = lent + 1,
        arms_drawn = arms_drawn + (candidate.draws AND :arm::text <> '')::int
    FROM candidate WHERE annotation_membership.id = :membership
    RETURNING lent
)
INSERT INTO annotation_assignment (item_id, membership_id, state, token, lease_until, skip_reason, flagged, flag_note,
                                   number, served_at)
SELECT id, :membership, 'open', :token, now() + make_interval(mins => :minutes), '', false, '', lent - 1,
       clock_timestamp()
FROM candidate, marked
ON CONFLICT (item_id, membership_id) DO UPDATE
SET state = 'open', token = excluded.token, lent_at = now(), lease_until = excluded.lease_until, ended_at = NULL,
    number = excluded.number, place = 0, served_at = excluded.served_at
RETURNING id;
