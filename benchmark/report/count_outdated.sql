-- Of each run (:runs): its documents among the first :k of a query (null: all) that have a newer text and no grade of
-- the query in a version of the qrels. Reads only.
SELECT r.run_id, count(DISTINCT d.id)
FROM benchmark_ranking r
CROSS JOIN LATERAL unnest(r.documents[1 : COALESCE(:k, cardinality(r.documents))]) AS ranked (document)
JOIN corpus_document d ON d.id = ranked.document AND NOT d.is_current
WHERE r.run_id = ANY(:runs) AND d.collection_id = :collection
  AND NOT EXISTS (
      SELECT FROM benchmark_qrelsrow g
      WHERE g.qrels_id = :qrels AND g.query_id = r.query_id AND ranked.document = ANY(g.documents))
GROUP BY r.run_id;
