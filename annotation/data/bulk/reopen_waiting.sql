-- Return withdrawn tasks to the states in which they waited, where their pair still has a grade of the act that is
-- undone. Items are locked in the order of their ids, before pairs.
WITH locked AS MATERIALIZED (
    SELECT i.id, task.state FROM corpus_item i
    JOIN unnest(:items::bigint[], :states::text[]) AS task (id, state) ON task.id = i.id
    WHERE i.state = 'withdrawn'
      AND i.pair_id IN (SELECT pair_id FROM judgment_head WHERE id = ANY(:judgments) AND grade IS NOT NULL)
    ORDER BY i.id FOR UPDATE OF i
)
UPDATE corpus_item i SET state = locked.state FROM locked WHERE i.id = locked.id
RETURNING i.campaign;
