-- Add relevant pairs without a target to an evidence campaign. A pair whose newest current target is good needs
-- none, unless all are to be written again. A person's text is never replaced, and a text that waits for a person is
-- left to them. No locks but the campaign's (start_campaign holds the collection's).
WITH new_pairs AS (
    SELECT p.id, p.id AS position FROM corpus_label l
    JOIN corpus_pair p ON p.id = l.pair_id AND p.collection_id = :collection
    JOIN corpus_collection c ON c.id = p.collection_id
    JOIN corpus_query q ON q.id = p.query_id AND q.is_current
    JOIN corpus_document d ON d.id = p.document_id AND d.is_current
    WHERE l.aspect_id IS NULL AND l.grade >= c.relevant_from AND NOT EXISTS (
        SELECT 1 FROM judges_work w WHERE w.pair_id = p.id AND (w.campaign_id = :campaign
            OR (w.campaign_id = ANY(:earlier) AND w.state IN ('labelled', 'failed'))))
      AND NOT EXISTS (
        SELECT 1 FROM corpus_target t WHERE t.pair_id = p.id AND t.good AND (t.kind = 'person' OR NOT :again)
            AND NOT EXISTS (SELECT 1 FROM corpus_target later WHERE later.withdraws_id = t.id))
      AND NOT EXISTS (
        SELECT 1 FROM corpus_item i
        WHERE i.pair_id = p.id AND i.reason = 'evidence' AND i.state IN ('open', 'conflict'))
    ORDER BY p.id LIMIT :limit
)
SELECT enqueue_work(:campaign, ARRAY(SELECT id FROM new_pairs ORDER BY position));
