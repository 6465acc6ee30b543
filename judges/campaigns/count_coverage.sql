-- Count the relevant pairs of a collection that have texts to learn from. Reads only.
WITH positives AS (
    SELECT p.id FROM corpus_label l JOIN corpus_pair p ON p.id = l.pair_id
    JOIN corpus_collection c ON c.id = p.collection_id
    WHERE c.id = :collection AND l.aspect_id IS NULL AND l.grade >= c.relevant_from
),
good AS (
    SELECT t.pair_id, bool_or(t.kind = 'person') AS person
    FROM corpus_target t JOIN positives ON positives.id = t.pair_id
    WHERE t.good AND NOT EXISTS (SELECT 1 FROM corpus_target later WHERE later.withdraws_id = t.id)
    GROUP BY 1
),
waiting AS (
    SELECT DISTINCT i.pair_id FROM corpus_item i JOIN positives ON positives.id = i.pair_id
    WHERE i.reason = 'evidence' AND i.state IN ('open', 'conflict')
      AND NOT EXISTS (SELECT 1 FROM good WHERE good.pair_id = i.pair_id)
)
SELECT (SELECT count(*) FROM positives), (SELECT count(*) FROM good), (SELECT count(*) FROM good WHERE person),
    (SELECT count(*) FROM waiting);
