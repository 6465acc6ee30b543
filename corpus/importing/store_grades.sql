-- Append what import_grade, a temporary table, holds and nobody said before; count what is new, and what stands in
-- place of an earlier grade. No locks; new rows.
WITH standing AS MATERIALIZED (
    -- What the staged assessors say now: of no task, and not superseded. Read once: as a condition of a join it would
    -- be asked for every row. An adjudication that was imported stands beside what its assessor had said before.
    SELECT j.id, j.pair_id, j.assessor_id, j.grade, j.step = 'adjudication' AS adjudicates FROM judgment_head j
    WHERE j.assessor_id IN (SELECT assessor_id FROM import_grade) AND j.aspect_id IS NULL AND j.item_id IS NULL
),
written AS (
    INSERT INTO corpus_judgment (pair_id, assessor_id, step, grade, supersedes_id, arm, guideline, comment)
    SELECT p.id, s.assessor_id, s.step, s.grade, j.id, '', 0, ''
    FROM import_grade s JOIN corpus_pair p ON p.query_id = s.query_id AND p.document_id = s.document_id
    LEFT JOIN standing j
        ON j.pair_id = p.id AND j.assessor_id = s.assessor_id AND j.adjudicates = (s.step = 'adjudication')
    WHERE j.id IS NULL OR j.grade IS DISTINCT FROM s.grade
    ORDER BY s.file, s.said_at, s.line
    RETURNING supersedes_id
)
SELECT count(*) FILTER (WHERE supersedes_id IS NULL), count(supersedes_id) FROM written;
