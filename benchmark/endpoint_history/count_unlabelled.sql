-- Pairs of a run without a label and without a grade in a version of the qrels (null: none); and of these, those that
-- have a label with an earlier text of the document. Reads only.
WITH unlabelled AS (
    SELECT r.query_id, returned.document_id
    FROM benchmark_ranking r CROSS JOIN LATERAL unnest(r.documents) AS returned (document_id)
    WHERE r.run_id = :run
      AND NOT EXISTS (
          SELECT FROM benchmark_qrelsrow g
          WHERE g.qrels_id = :qrels AND g.query_id = r.query_id AND returned.document_id = ANY(g.documents))
      AND NOT EXISTS (
          SELECT FROM corpus_pair p JOIN corpus_label l ON l.pair_id = p.id AND l.aspect_id IS NULL
          WHERE p.query_id = r.query_id AND p.document_id = returned.document_id)
)
SELECT count(*), count(*) FILTER (WHERE EXISTS (
    SELECT FROM corpus_document d
    JOIN corpus_document e ON e.collection_id = d.collection_id AND e.external_id = d.external_id AND e.id <> d.id
    JOIN corpus_pair p ON p.query_id = u.query_id AND p.document_id = e.id
    JOIN corpus_label l ON l.pair_id = p.id AND l.aspect_id IS NULL
    WHERE d.id = u.document_id))
FROM unlabelled u;
