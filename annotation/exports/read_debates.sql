-- The turns of each pair's newest debate, one that was broken off after all others, by query id and document id.
-- Reads only.
SELECT p.query, p.document, t.round, t.role, t.judge_id, t.verdict, t.reason, t.quotes, t."window"
FROM (
    SELECT a.pair_id, a.round, a.role, a.judge_id, a.verdict, a.reason, a.quotes, a."window",
           rank() OVER (PARTITION BY a.pair_id ORDER BY (EXISTS (
               SELECT FROM judges_work w WHERE w.campaign_id = a.campaign_id AND w.pair_id = a.pair_id
                   AND w.state IN ('labelled', 'escalated'))) DESC, a.campaign_id DESC) AS place
    FROM counted_attempt a
    WHERE campaign_id = ANY(:campaigns) AND role IN ('for', 'against') AND outcome = 'labelled'
) t
JOIN current_pair p ON p.id = t.pair_id AND p.collection_id = :collection
WHERE t.place = 1
ORDER BY p.query COLLATE "C", p.document COLLATE "C", t.round, t.role = 'against';
