-- Relevant documents among the first `k` of each query that the qrels before did not know. LIMIT 1 of what is
-- unique: each row is looked up by its index, also before the tables' statistics are known. Reads only.
SELECT q.id, q.external_id, q.text, d.id, d.external_id, d.title, one.rank, now.grades[one.at], now.origins[one.at],
    coalesce(cardinality(was.documents), 0) > 0
FROM unnest(:keys::bigint[]) WITH ORDINALITY AS asked(query, place)
CROSS JOIN LATERAL (
    SELECT * FROM benchmark_ranking WHERE run_id = :run AND query_id = asked.query LIMIT 1
) r
CROSS JOIN LATERAL (
    SELECT * FROM benchmark_qrelsrow WHERE qrels_id = :after AND query_id = asked.query LIMIT 1
) now
LEFT JOIN LATERAL (
    SELECT * FROM benchmark_qrelsrow WHERE qrels_id = :before AND query_id = asked.query LIMIT 1
) was ON true
CROSS JOIN LATERAL (
    SELECT document, rank, array_position(now.documents, document) AS at
    FROM unnest(r.documents[1 : :k]) WITH ORDINALITY AS returned(document, rank)
) one
JOIN corpus_query q ON q.id = asked.query JOIN corpus_document d ON d.id = one.document
WHERE now.grades[one.at] >= :relevant AND NOT one.document = ANY (coalesce(was.documents, '{}'))
ORDER BY asked.place, one.rank;
