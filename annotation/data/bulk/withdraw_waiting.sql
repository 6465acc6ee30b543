-- Withdraw the tasks of the selected pairs that wait for a grade, unless an adjudicator has given the pair this label
-- already. What somebody has open is left to them, and tasks that measure or ask for texts stay. Items are locked in the
-- order of their ids, before pairs.
WITH waiting AS MATERIALIZED (
    SELECT i.id, i.state FROM corpus_item i
    WHERE i.collection_id = :collection AND i.pair_id = ANY(:pairs) AND i.state IN ('open', 'conflict')
      AND i.taken = i.done AND i.reason NOT IN ('audit', 'evidence') AND NOT is_measuring(i.reason)
      AND NOT EXISTS (
        SELECT FROM corpus_label l
        WHERE l.pair_id = i.pair_id AND l.aspect_id IS NULL AND l.grade = :grade::int AND l.origin = 'adjudicator')
    ORDER BY i.id FOR UPDATE
)
UPDATE corpus_item i SET state = 'withdrawn' FROM waiting WHERE i.id = waiting.id
RETURNING i.id, waiting.state, i.campaign;
