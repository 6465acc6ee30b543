-- Add the pairs of a scope to a campaign, in their given order: workers claim pairs in the order of their rows. No locks but the campaign's (start_campaign holds the collection's).
WITH new_pairs AS (
    SELECT p.id, listed.position AS position
    FROM unnest(:pairs::bigint[]) WITH ORDINALITY AS listed(pair, position)
    JOIN corpus_pair p ON p.id = listed.pair
    JOIN corpus_query q ON q.id = p.query_id AND q.is_current
    JOIN corpus_document d ON d.id = p.document_id AND d.is_current
    WHERE p.collection_id = :collection AND NOT EXISTS (
        SELECT 1 FROM judges_work w WHERE w.pair_id = p.id AND (w.campaign_id = :campaign
            OR (w.campaign_id = ANY(:earlier) AND w.state IN ('labelled', 'escalated', 'failed'))))
    ORDER BY position LIMIT :limit
)
SELECT enqueue_work(:campaign, ARRAY(SELECT id FROM new_pairs ORDER BY position));
