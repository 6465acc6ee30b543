-- Reserve the ordinary items of a study's pairs while the study runs, except those assigned already.
-- Lock order: items, then their reservations.
WITH held AS (
    UPDATE corpus_item SET reserved = true
    WHERE pair_id = ANY (:pairs) AND state = 'open' AND NOT reserved AND taken = 0 RETURNING id)
DELETE FROM annotation_reservedfor WHERE item_id IN (SELECT id FROM held);
