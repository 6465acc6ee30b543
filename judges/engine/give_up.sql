-- Fail pairs that were claimed too often: each lost its worker before the end. Lock order: work, tally.
WITH gone AS (
    UPDATE judges_work SET state = 'failed', reason = 'error', lease_until = NULL, ended_at = now(),
        error = 'claimed ' || claims || ' times, and every worker was lost before the end'
    WHERE campaign_id = :campaign AND state = 'running' AND lease_until < now() AND claims >= :most
    RETURNING campaign_id
), counted AS (
    INSERT INTO judges_tally AS t (campaign_id, shard, key, value)
    SELECT campaign_id, :shard::int, 'failed', count(*) FROM gone GROUP BY campaign_id HAVING count(*) > 0
    ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value
)
SELECT count(*) FROM gone;
