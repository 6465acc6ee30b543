-- Of versions of documents (:replaced), how many the runs of each other endpoint returned, and no run of :endpoint.
-- Reads only.
WITH returned AS (
    SELECT DISTINCT run.recipe ->> 'endpoint' AS endpoint, ranked.document
    FROM benchmark_run run JOIN benchmark_ranking r ON r.run_id = run.id
    CROSS JOIN LATERAL unnest(r.documents) AS ranked (document)
    WHERE run.collection_id = :collection AND run.kind = 'search' AND ranked.document = ANY(:replaced)
)
SELECT endpoint, count(*) FROM returned
WHERE document NOT IN (SELECT own.document FROM returned own WHERE own.endpoint = :endpoint)
GROUP BY endpoint ORDER BY endpoint;
