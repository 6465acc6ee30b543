-- How many of the free selected pairs each member has seen: assigned, judged or skipped here, or judged before the
-- import. Reads only.
WITH free AS MATERIALIZED (
    SELECT DISTINCT i.pair_id FROM corpus_item i
    WHERE i.collection_id = :collection AND i.pair_id = ANY(:pairs) AND i.state = 'open' AND NOT is_measuring(i.reason)
      AND (NOT i.reserved OR EXISTS (SELECT FROM annotation_reservedfor r WHERE r.item_id = i.id))
),
met AS (
    SELECT a.membership_id AS member, i.pair_id FROM free JOIN corpus_item i ON i.pair_id = free.pair_id
    JOIN annotation_assignment a ON a.item_id = i.id WHERE a.state <> 'returned'
    UNION
    SELECT m.id, j.pair_id FROM free JOIN corpus_judgment j ON j.pair_id = free.pair_id
    JOIN annotation_membership m ON m.assessor_id = j.assessor_id WHERE j.aspect_id IS NULL
)
SELECT member, count(*) FROM met GROUP BY member;
