-- Escalate every failed pair of a campaign to people. Lock order: work, items.
WITH failed AS (
    UPDATE judges_work w SET state = 'escalated', reason = 'error' FROM corpus_pair p, corpus_collection c
    WHERE w.campaign_id = :campaign AND w.state = 'failed' AND p.id = w.pair_id AND c.id = p.collection_id
    RETURNING p.id AS pair, p.collection_id AS collection, c.overlap,
        queue_priority(c.order, c.seed, p.id, p.query_id, p.uncertainty) AS priority
), opened AS (
    INSERT INTO corpus_item
        (collection_id, pair_id, campaign, reason, priority, overlap, seq, state, taken, done)
    SELECT collection, pair, campaign, reason, priority, overlap, next_seq(pair, reason), 'open', 0, 0
    FROM (
        SELECT collection, pair, :campaign::bigint AS campaign, 'error' AS reason, priority, overlap
        FROM failed WHERE NOT EXISTS (SELECT 1 FROM corpus_item i
            WHERE i.pair_id = pair AND i.reason = 'error' AND i.state IN ('open', 'conflict'))
    ) new_items ORDER BY pair
)
SELECT count(*) FROM failed;
