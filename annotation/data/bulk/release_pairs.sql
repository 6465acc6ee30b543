-- Release the selected pairs that are reserved for a member. Lock order: items, in the order of their ids;
-- reservations.
WITH tasks AS MATERIALIZED (
    SELECT i.id, i.pair_id FROM corpus_item i
    WHERE i.collection_id = :collection AND i.pair_id = ANY(:pairs) AND i.state IN ('open', 'conflict')
      AND NOT is_measuring(i.reason) AND i.reserved
      AND EXISTS (SELECT FROM annotation_reservedfor r WHERE r.item_id = i.id)
    ORDER BY i.id FOR UPDATE
),
deleted AS (DELETE FROM annotation_reservedfor WHERE item_id IN (SELECT id FROM tasks)),
freed AS (UPDATE corpus_item SET reserved = false WHERE id IN (SELECT id FROM tasks))
SELECT DISTINCT pair_id FROM tasks;
