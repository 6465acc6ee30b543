-- Fill import_compared: grades of known ids, each beside the first row of the same pair and assessor, and what the
-- assessor said before. A person who judged a pair in several tasks, as our own judgments.jsonl has it, is heard by
-- the latest. Its tables are temporary ones of the import.
INSERT INTO import_compared
WITH said AS MATERIALIZED (
    SELECT p.query_id, p.document_id, j.assessor_id, j.grade, j.step = 'adjudication' AS adjudicates
    FROM import_assessor a JOIN judgment_head j ON j.assessor_id = a.assessor_id
    JOIN corpus_pair p ON p.id = j.pair_id
    WHERE j.aspect_id IS NULL AND j.item_id IS NULL
),
found AS (
    SELECT f.*, a.assessor_id, f.step = 'adjudication' AS adjudicates, f.said_at <> '' AND f.said_at < max(f.said_at)
               OVER (PARTITION BY f.query_id, f.document_id, a.assessor_id, f.step) AS is_earlier
    FROM import_found f JOIN import_assessor a ON a.name = f.assessor AND a.kind = f.kind
    WHERE f.query_id IS NOT NULL AND f.document_id IS NOT NULL AND f.grade IS NOT NULL
)
SELECT f.line, f.grade, f.query_id, f.document_id, f.assessor_id, f.step, f.said_at, said.grade AS before,
       row_number() OVER same AS place, min(f.line) OVER same AS first_line, first_value(f.grade) OVER same AS first
FROM found f
LEFT JOIN said ON said.query_id = f.query_id AND said.document_id = f.document_id
                  AND said.assessor_id = f.assessor_id AND said.adjudicates = f.adjudicates
WHERE NOT f.is_earlier
WINDOW same AS (PARTITION BY f.query_id, f.document_id, f.assessor_id, f.step ORDER BY f.line);
