-- The pairs' own items leave the queue while a study runs, but for those that somebody has already.
-- Lock order: items, then who they were reserved for.
WITH held AS (
    UPDATE corpus_item SET reserved = true
    WHERE pair_id = ANY (:pairs) AND state = 'open' AND NOT reserved AND taken = 0 RETURNING id)
DELETE FROM annotation_reservedfor WHERE item_id IN (SELECT id FROM held);
