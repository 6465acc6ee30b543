-- Add the collection's candidates without an outcome to a campaign. No locks but the campaign's (start_campaign
-- holds the collection's).
WITH new_pairs AS (
    SELECT p.id, p.id AS position FROM corpus_pair p
    JOIN corpus_query q ON q.id = p.query_id AND q.is_current
    JOIN corpus_document d ON d.id = p.document_id AND d.is_current
    WHERE p.collection_id = :collection AND p.is_candidate AND NOT EXISTS (
        SELECT 1 FROM judges_work w WHERE w.pair_id = p.id AND (w.campaign_id = :campaign
            OR (w.campaign_id = ANY(:earlier) AND w.state IN ('labelled', 'escalated', 'failed'))))
    ORDER BY position LIMIT :limit
)
SELECT enqueue_work(:campaign, ARRAY(SELECT id FROM new_pairs ORDER BY position));
