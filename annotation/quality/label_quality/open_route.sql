-- Open a blind item for each pair of a route that no person was ever asked about. No locks; new items.
WITH opened AS (
    INSERT INTO corpus_item
        (collection_id, pair_id, campaign, reason, priority, overlap, seq, state, taken, done)
    SELECT p.collection_id, p.id, :campaign, 'audit', queue_priority(c.order, c.seed, p.id, p.query_id, p.uncertainty),
        2, 0, 'open', 0, 0
    FROM corpus_pair p JOIN corpus_collection c ON c.id = p.collection_id
    WHERE p.id = ANY(:pairs) ORDER BY p.id
    ON CONFLICT DO NOTHING RETURNING 1
)
SELECT count(*) FROM opened;
