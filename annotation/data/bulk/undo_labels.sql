-- Withdraw the grades of an act that nobody has replaced since; where one replaced an earlier grade of its author, that
-- grade is appended once more. The pairs are locked before (corpus.labels.lock_pairs).
INSERT INTO corpus_judgment (pair_id, assessor_id, step, grade, supersedes_id, arm, guideline, comment)
SELECT j.pair_id, j.assessor_id, j.step, e.grade, j.id, '', COALESCE(e.guideline, 0), COALESCE(e.comment, '')
FROM judgment_head j LEFT JOIN corpus_judgment e ON e.id = j.supersedes_id
WHERE j.id = ANY(:judgments)
ORDER BY j.id
RETURNING pair_id;
