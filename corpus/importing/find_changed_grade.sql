-- The first staged line that contradicts what the assessor said before. Reads only; import_grade is temporary.
WITH standing AS MATERIALIZED (
    -- What the staged assessors say now: of no task, and not superseded. Read once: as a condition of a join it would
    -- be asked for every row. An adjudication that was imported stands beside what its assessor had said before.
    SELECT j.id, j.pair_id, j.assessor_id, j.grade, j.step = 'adjudication' AS adjudicates FROM judgment_head j
    WHERE j.assessor_id IN (SELECT assessor_id FROM import_grade) AND j.aspect_id IS NULL AND j.item_id IS NULL
)
SELECT s.file, s.line, s.grade, j.grade FROM import_grade s
JOIN corpus_pair p ON p.query_id = s.query_id AND p.document_id = s.document_id
JOIN standing j ON j.pair_id = p.id AND j.assessor_id = s.assessor_id AND j.adjudicates = (s.step = 'adjudication')
WHERE s.assessor_id = :a AND j.grade IS DISTINCT FROM s.grade ORDER BY s.file, s.line LIMIT 1;
