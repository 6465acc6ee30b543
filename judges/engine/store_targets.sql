-- Store targets that a judge wrote, with an item for each that a person must edit. The state `labelled` means that
-- the work is done; its label stays null, and no judgment, label or audit is written. Lock order: pairs (locked
-- before), work, targets, items, tallies.
WITH r AS MATERIALIZED (
    SELECT * FROM json_to_recordset(:rows::json) AS r(
        work bigint, fence int, campaign bigint, pair bigint, collection bigint, good bool, contribution text,
        evidence text, writer text, measures jsonb, priority float8)
),
ended AS (
    UPDATE judges_work w SET state = CASE WHEN r.good THEN 'labelled' ELSE 'escalated' END,
        reason = CASE WHEN r.good THEN '' ELSE 'evidence' END, error = '', lease_until = NULL, ended_at = now()
    FROM r WHERE w.id = r.work AND w.fence = r.fence AND w.state = 'running'
    RETURNING r.*
),
targets AS (
    INSERT INTO corpus_target (pair_id, version, kind, writer, contribution, evidence, measures, good)
    SELECT e.pair, COALESCE((SELECT max(t.version) + 1 FROM corpus_target t WHERE t.pair_id = e.pair), 1),
        'judge', e.writer, e.contribution, e.evidence, e.measures, e.good
    FROM ended e ORDER BY e.pair
),
opened AS (
    INSERT INTO corpus_item
        (collection_id, pair_id, campaign, reason, priority, overlap, seq, state, taken, done)
    SELECT collection, pair, campaign, reason, priority, overlap, next_seq(pair, reason), 'open', 0, 0
    FROM (
        SELECT e.collection, e.pair, e.campaign, 'evidence' AS reason, e.priority, 1 AS overlap
        FROM ended e WHERE NOT e.good AND NOT EXISTS (
            SELECT 1 FROM corpus_item i
            WHERE i.pair_id = e.pair AND i.reason = 'evidence' AND i.state IN ('open', 'conflict'))
    ) new_items ORDER BY pair
),
sums AS (
    SELECT campaign, :shard::int AS shard, key, sum(value) AS value FROM (
        SELECT campaign, CASE WHEN good THEN 'written' ELSE 'escalated:evidence' END, 1 FROM ended
    ) AS k(campaign, key, value) GROUP BY 1, 3 ORDER BY 1, 3
),
tallied AS (
    INSERT INTO judges_tally AS t (campaign_id, shard, key, value)
    SELECT campaign, shard, key, value FROM sums
    ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value
)
SELECT work FROM ended;
