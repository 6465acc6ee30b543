-- Reserve one task of each selected pair for a member who has never seen it, since nobody may judge a pair twice. It is
-- assigned to them first (task_order.FRONT). Tasks that are reserved without a member wait for a study and stay. Lock
-- order: items, in the order of their ids; reservations.
WITH tasks AS MATERIALIZED (
    SELECT i.id, i.priority AS before FROM corpus_item i
    WHERE i.collection_id = :collection AND i.pair_id = ANY(:pairs) AND i.state = 'open' AND i.taken < i.overlap
      AND NOT is_measuring(i.reason)
      AND (NOT i.reserved OR EXISTS (SELECT FROM annotation_reservedfor r WHERE r.item_id = i.id))
      AND NOT EXISTS (
        SELECT FROM corpus_item o JOIN annotation_assignment mine ON mine.item_id = o.id
        WHERE o.pair_id = i.pair_id AND mine.membership_id = :member AND mine.state <> 'returned')
      AND NOT EXISTS (
        SELECT FROM corpus_judgment j JOIN annotation_membership m ON m.assessor_id = j.assessor_id
        WHERE j.pair_id = i.pair_id AND j.aspect_id IS NULL AND m.id = :member)
      AND i.id = (
        SELECT o.id FROM corpus_item o
        WHERE o.pair_id = i.pair_id AND o.state = 'open' AND o.taken < o.overlap AND NOT is_measuring(o.reason)
        ORDER BY o.reason = 'evidence', o.id LIMIT 1)
    ORDER BY i.id FOR UPDATE
),
deleted AS (
    DELETE FROM annotation_reservedfor WHERE item_id IN (SELECT id FROM tasks) AND membership_id <> :member
),
added AS (
    INSERT INTO annotation_reservedfor (item_id, membership_id) SELECT id, :member FROM tasks
    ON CONFLICT DO NOTHING
)
UPDATE corpus_item i
SET reserved = true, priority = -1e9 + queue_priority(c.order, c.seed, p.id, p.query_id, p.uncertainty)
FROM tasks, corpus_pair p, corpus_collection c
WHERE i.id = tasks.id AND p.id = i.pair_id AND c.id = :collection
RETURNING i.id, tasks.before, i.priority;
