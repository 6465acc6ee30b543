-- Take back the comparisons of a set whose time ran out with other members. Locks the leases, skipping locked ones,
-- and then their comparisons.
WITH expired AS (
    DELETE FROM annotation_comparisonlease WHERE id IN (
        SELECT l.id FROM annotation_comparisonlease l JOIN annotation_comparison c ON c.id = l.comparison_id
        WHERE c.set_id = :set AND l.is_open AND l.lease_until < clock_timestamp() AND l.membership_id <> :membership
        ORDER BY l.id FOR UPDATE OF l SKIP LOCKED)
    RETURNING comparison_id
)
UPDATE annotation_comparison c SET taken = c.taken - freed.leases
FROM (SELECT comparison_id, count(*) AS leases FROM expired GROUP BY comparison_id) freed
WHERE c.id = freed.comparison_id;
