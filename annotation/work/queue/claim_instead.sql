-- Assign the member an item in place of the queue's next one: `kind` is a check, an item of the qualification test, or
-- a repeat. Assigns nothing where none is left. Lock order: the item (SKIP LOCKED), the membership, the assignment.
WITH judged AS (
    -- A pair that this member judged some time ago, shown as it was then.
    SELECT i.collection_id, i.pair_id, i.priority, coalesce(nullif(i.shown_as, ''), i.reason) AS shown_as, i.arm,
           i.turns
    FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
    WHERE :kind = 'repeat' AND a.membership_id = :membership AND a.state = 'done' AND NOT a.flagged
      AND a.judgment_id IS NOT NULL AND a.number BETWEEN :lent::int - 500 AND :lent::int - :separate::int
      AND i.reason NOT IN ('check', 'repeat', 'qualification', 'evidence', 'study')
      AND NOT EXISTS (
        SELECT FROM corpus_item r JOIN annotation_assignment own ON own.item_id = r.id
        WHERE r.pair_id = i.pair_id AND r.reason = 'repeat' AND own.membership_id = :membership)
    ORDER BY hashint8extended(i.id, :membership) LIMIT 1
), repeat AS (
    INSERT INTO corpus_item (collection_id, pair_id, reason, priority, overlap, seq, state, taken, done,
                             shown_as, arm, turns, reserved)
    SELECT collection_id, pair_id, 'repeat', priority, 1,
           coalesce((SELECT max(i.seq) + 1 FROM corpus_item i
                     WHERE i.pair_id = judged.pair_id AND i.reason = 'repeat'), 0),
           'open', 1, 0, shown_as, arm, turns, true
    FROM judged
    RETURNING id
), reserved AS (
    INSERT INTO annotation_reservedfor (item_id, membership_id) SELECT id, :membership FROM repeat
), shared AS (
    -- A check, or an item of the qualification test, that this member never had, of a pair that they never had. All
    -- members share these items, and each gets them in their own order.
    SELECT i.id, i.arm = '' AND i.taken = 0 AS draws
    FROM corpus_item i
    WHERE :kind IN ('check', 'qualification') AND i.collection_id = :collection AND i.state = 'standing'
      AND i.reason = :kind AND i.taken < i.overlap AND (i.reason = 'check' OR i.seq = :trial)
      AND NOT EXISTS (
        SELECT FROM corpus_item other JOIN annotation_assignment a ON a.item_id = other.id
        WHERE other.pair_id = i.pair_id AND other.seq >= i.seq AND a.membership_id = :membership
          AND (other.id <> i.id OR a.state <> 'returned'))
    ORDER BY i.priority, hashint8extended(i.id, :membership) LIMIT 1
    FOR UPDATE OF i SKIP LOCKED
), candidate AS (
    SELECT id, draws FROM shared UNION ALL SELECT id, false FROM repeat
), taken AS (
    UPDATE corpus_item SET taken = taken + 1, arm = CASE WHEN candidate.draws THEN :arm::text ELSE arm END
    FROM candidate WHERE corpus_item.id = candidate.id
), marked AS (
    -- Items of the test are not counted as assigned work.
    UPDATE annotation_membership
    SET lent = lent + (:kind <> 'qualification')::int,
        arms_drawn = arms_drawn + (candidate.draws AND :arm::text <> '')::int
    FROM candidate WHERE annotation_membership.id = :membership
    RETURNING CASE WHEN :kind <> 'qualification' THEN lent - 1 END AS number
)
INSERT INTO annotation_assignment (item_id, membership_id, state, token, lease_until, skip_reason, flagged, flag_note,
                                   number, served_at)
SELECT id, :membership, 'open', :token, now() + make_interval(mins => :minutes), '', false, '', number,
       clock_timestamp()
FROM candidate, marked
ON CONFLICT (item_id, membership_id) DO UPDATE
SET state = 'open', token = excluded.token, lent_at = now(), lease_until = excluded.lease_until, ended_at = NULL,
    number = excluded.number, place = 0, served_at = excluded.served_at
RETURNING id;
