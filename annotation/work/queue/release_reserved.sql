-- Items reserved for a member are for everybody again, except those of studies and repeats. Lock order: items by id.
WITH released AS MATERIALIZED (
    SELECT i.id FROM annotation_reservedfor r JOIN corpus_item i ON i.id = r.item_id
    WHERE r.membership_id = :membership AND i.reserved AND i.state = 'open' AND i.reason <> ALL (:measuring)
    ORDER BY i.id FOR UPDATE OF i),
forgotten AS (DELETE FROM annotation_reservedfor WHERE item_id IN (SELECT id FROM released))
UPDATE corpus_item SET reserved = false WHERE id IN (SELECT id FROM released);
