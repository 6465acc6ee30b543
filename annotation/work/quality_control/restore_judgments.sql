-- The judgments that such rows (withdraw_judgments.sql) withdrew, once more, with all that they said and when.
-- Lock order: items and pairs (locked before).
INSERT INTO corpus_judgment (pair_id, aspect_id, assessor_id, item_id, step, grade, arm, guideline, milliseconds,
                             idle_milliseconds, spans, comment, created_at, supersedes_id)
SELECT j.pair_id, j.aspect_id, j.assessor_id, j.item_id, j.step, j.grade, j.arm, j.guideline, j.milliseconds,
       j.idle_milliseconds, j.spans, j.comment, j.created_at, gone.id
FROM corpus_judgment gone JOIN corpus_judgment j ON j.id = gone.supersedes_id
WHERE gone.id = ANY(:judgments) ORDER BY gone.id RETURNING id, pair_id, item_id, aspect_id, step;
