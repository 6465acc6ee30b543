-- Store an admin's grade for each selected pair, unless an adjudicator has given it that label already. The admin's own
-- earlier grade is superseded. The pairs are locked before (corpus.labels.lock_pairs), so that of two acts at once the
-- second sees the rows of the first.
WITH earlier AS (
    SELECT j.id, j.pair_id FROM judgment_head j
    WHERE j.pair_id = ANY(:pairs) AND j.assessor_id = :assessor AND j.step = 'adjudication'
      AND j.item_id IS NULL AND j.aspect_id IS NULL
)
INSERT INTO corpus_judgment (pair_id, assessor_id, step, grade, supersedes_id, arm, guideline, comment)
SELECT p.id, :assessor, 'adjudication', :grade::int, e.id, '', :guideline, :comment
FROM corpus_pair p LEFT JOIN earlier e ON e.pair_id = p.id
WHERE p.collection_id = :collection AND p.id = ANY(:pairs) AND NOT EXISTS (
    SELECT FROM corpus_label l
    WHERE l.pair_id = p.id AND l.aspect_id IS NULL AND l.grade = :grade::int AND l.origin = 'adjudicator')
ORDER BY p.id
RETURNING id, pair_id;
