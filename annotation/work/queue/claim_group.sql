-- Assign the other open pairs of a new lease's query, each pair once, at most `most` beside the lease. Items without an arm
-- get the next ones of this member's sequence, which the lease itself may have advanced. Of reserved items only those
-- that a bulk action reserved for this member. Lock order: items (SKIP LOCKED), the
-- membership, assignments.
WITH first AS MATERIALIZED (
    SELECT i.pair_id, p.query_id, m.arms_drawn - :drawn::int AS moved
    FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id JOIN corpus_pair p ON p.id = i.pair_id
    JOIN annotation_membership m ON m.id = a.membership_id
    WHERE a.id = :assignment AND i.reason NOT IN ('evidence', 'qualification')
), more AS MATERIALIZED (
    SELECT i.id, i.arm = '' AND i.taken = 0 AND i.reason NOT IN ('audit', 'evidence') AS draws, first.moved
    FROM first JOIN corpus_pair p ON p.query_id = first.query_id AND p.id <> first.pair_id
    JOIN corpus_item i ON i.pair_id = p.id
    WHERE i.collection_id = :collection AND i.state = 'open' AND i.taken < i.overlap
      AND i.reason <> 'evidence' AND CASE WHEN i.reserved THEN i.reason NOT IN ('study', 'repeat')
           AND EXISTS (SELECT FROM annotation_reservedfor r
                       WHERE r.item_id = i.id AND r.membership_id = :membership) ELSE true END
      AND NOT EXISTS (
        SELECT FROM corpus_item other JOIN annotation_assignment a ON a.item_id = other.id
        WHERE other.pair_id = i.pair_id AND a.membership_id = :membership
          AND NOT (other.id = i.id AND a.state = 'returned'))
      AND NOT EXISTS (
        SELECT FROM corpus_item other
        WHERE other.pair_id = i.pair_id AND other.id < i.id AND other.state = 'open' AND other.taken < other.overlap
          AND other.reason <> 'evidence' AND CASE WHEN other.reserved THEN other.reason NOT IN ('study', 'repeat')
           AND EXISTS (SELECT FROM annotation_reservedfor r
                       WHERE r.item_id = other.id AND r.membership_id = :membership) ELSE true END)
    ORDER BY hashint8extended(i.id, :membership) LIMIT :most
    FOR UPDATE OF i SKIP LOCKED
), placed AS (
    SELECT id, draws, row_number() OVER w::int AS place,
           CASE WHEN draws THEN (:arms::text[])[moved + sum(draws::int) OVER w] END AS arm
    FROM more WINDOW w AS (ORDER BY id)
), taken AS (
    UPDATE corpus_item SET taken = taken + 1, arm = coalesce(placed.arm, corpus_item.arm)
    FROM placed WHERE corpus_item.id = placed.id
), marked AS (
    UPDATE annotation_membership SET lent = lent + n, arms_drawn = arms_drawn + drawn
    FROM (SELECT count(*) AS n, count(*) FILTER (WHERE arm <> '') AS drawn FROM placed) counted
    WHERE id = :membership AND n > 0
    RETURNING lent - n AS before
)
INSERT INTO annotation_assignment (item_id, membership_id, state, token, lease_until, skip_reason, flagged, flag_note,
                                   number, place, served_at)
SELECT id, :membership, 'open', (:tokens::text[])[place], now() + make_interval(mins => :minutes), '', false,
       '', before + place - 1, place, clock_timestamp()
FROM placed, marked
ON CONFLICT (item_id, membership_id) DO UPDATE
SET state = 'open', token = excluded.token, lent_at = now(), lease_until = excluded.lease_until, ended_at = NULL,
    number = excluded.number, place = excluded.place, served_at = excluded.served_at;
