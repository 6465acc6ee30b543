-- Move waiting tasks to the front, to the back or to their normal position (`base`). Lock order: items, in the order of
-- their ids.
WITH tasks AS MATERIALIZED (
    SELECT i.id, i.pair_id, i.priority AS before FROM corpus_item i
    WHERE i.collection_id = :collection AND i.pair_id = ANY(:pairs)
      AND i.state IN ('open', 'conflict') AND NOT is_measuring(i.reason)
    ORDER BY i.id FOR UPDATE
)
UPDATE corpus_item i SET priority = :base + queue_priority(c.order, c.seed, p.id, p.query_id, p.uncertainty)
    -- Tasks for evidence come last, since they give away that a pair is relevant (task_order.LAST).
    + CASE WHEN i.reason = 'evidence' AND :base::float8 = 0 THEN 1e9 ELSE 0 END
FROM tasks, corpus_pair p, corpus_collection c
WHERE i.id = tasks.id AND p.id = tasks.pair_id AND c.id = :collection
RETURNING i.id, i.pair_id, tasks.before, i.priority;
