-- Assign the next :most comparisons of a set to a member who never had them, while people are wanted for them.
-- Locks their rows in the order of the set and skips those that another claim has locked; then inserts the leases.
WITH next AS (
    SELECT c.id, c.seq FROM annotation_comparison c
    WHERE c.set_id = :set AND c.taken < :people AND NOT EXISTS (
        SELECT FROM annotation_comparisonlease l WHERE l.comparison_id = c.id AND l.membership_id = :membership)
    ORDER BY c.seq LIMIT :most FOR UPDATE SKIP LOCKED
), assigned AS (
    UPDATE annotation_comparison c SET taken = c.taken + 1 FROM next WHERE c.id = next.id RETURNING c.id, c.seq
)
INSERT INTO annotation_comparisonlease (comparison_id, membership_id, swapped, is_open, lease_until)
SELECT id, :membership,
    get_byte(sha256(convert_to(concat_ws(':', :seed::text, seq, :membership::text), 'UTF8')), 0) % 2 = 1, true,
    clock_timestamp() + make_interval(mins => :minutes)
FROM assigned;
