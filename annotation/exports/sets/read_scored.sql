-- The drawn documents of each query, as the newest synthesize_scores of the query drew them. Reads only.
WITH newest AS (
    SELECT p.query_id, max(w.campaign_id) AS campaign
    FROM judges_work w JOIN corpus_pair p ON p.id = w.pair_id
    JOIN judges_campaign c ON c.id = w.campaign_id AND c.policy = 'evidence'
    WHERE c.collection_id = :collection AND w.stratum = ANY(:kinds::text[]) GROUP BY p.query_id
)
SELECT p.id, n.campaign, p.query_id, p.document_id, p.query, p.document, l.grade, l.origin,
    (SELECT max(j.created_at) FROM current_judgment j WHERE j.pair_id = p.id AND j.aspect_id IS NULL)
FROM newest n JOIN judges_work w ON w.campaign_id = n.campaign AND w.stratum = ANY(:kinds::text[])
JOIN current_pair p ON p.id = w.pair_id AND p.query_id = n.query_id
LEFT JOIN corpus_label l ON l.pair_id = p.id AND l.aspect_id IS NULL
ORDER BY p.query COLLATE "C", p.document COLLATE "C";
