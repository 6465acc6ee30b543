-- Candidates without a score of this teacher; a score that was imported (no row of ours) stays unless it is to
-- be replaced. Reads only.
SELECT p.query_id, p.id FROM current_pair p
WHERE p.collection_id = :collection AND p.is_candidate
  AND (NOT :labelled OR EXISTS (SELECT FROM corpus_label l WHERE l.pair_id = p.id AND l.aspect_id IS NULL))
  AND NOT EXISTS (
      SELECT FROM annotation_teacherscore s JOIN annotation_teacheranswer a ON a.id = s.answer_id
      WHERE s.pair_id = p.id AND a.api = :api AND a.url = :url AND a.model = :model)
  AND (:replace OR p.teacher_score IS NULL
       OR EXISTS (SELECT FROM annotation_teacherscore s WHERE s.pair_id = p.id))
ORDER BY p.query_id, p.id;
