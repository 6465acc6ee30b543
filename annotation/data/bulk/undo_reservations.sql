-- Release the tasks that an act reserved and nobody has changed since. Lock order: items, in the order of their ids;
-- reservations.
WITH tasks AS MATERIALIZED (
    SELECT i.id, i.pair_id, CASE WHEN i.priority = moved.after THEN moved.before ELSE i.priority END AS priority
    FROM unnest(:items::bigint[], :before::float8[], :after::float8[]) AS moved (id, before, after)
    JOIN corpus_item i ON i.id = moved.id AND i.state = 'open' AND i.reserved
    JOIN annotation_reservedfor r ON r.item_id = i.id AND r.membership_id = :member
    ORDER BY i.id FOR UPDATE OF i),
deleted AS (DELETE FROM annotation_reservedfor WHERE item_id IN (SELECT id FROM tasks))
UPDATE corpus_item i SET reserved = false, priority = tasks.priority FROM tasks WHERE i.id = tasks.id;
