-- The rows that take judgments away, as their author's undo would. Lock order: items and pairs (locked before).
INSERT INTO corpus_judgment (pair_id, assessor_id, item_id, aspect_id, step, arm, guideline, comment, supersedes_id)
SELECT pair_id, assessor_id, item_id, aspect_id, step, arm, guideline, '', id
FROM corpus_judgment WHERE id = ANY(:judgments) ORDER BY id RETURNING id, pair_id, item_id, aspect_id, step;
