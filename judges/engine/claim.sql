-- Claim up to `n` pairs, those with expired leases first, as they have waited longest. SKIP LOCKED lets workers claim
-- at the same time. Each claim raises the fencing token, which every later write must name. Lock order: work rows
-- alone.
WITH expired AS MATERIALIZED (
    SELECT id FROM judges_work WHERE campaign_id = :campaign AND state = 'running' AND lease_until < now()
        AND claims < :most AND :expired ORDER BY lease_until LIMIT :n FOR NO KEY UPDATE SKIP LOCKED
),
pending AS MATERIALIZED (
    SELECT id FROM judges_work WHERE campaign_id = :campaign AND state = 'pending'
        AND (lease_until IS NULL OR lease_until < now())
        ORDER BY id LIMIT :n - (SELECT count(*) FROM expired) FOR NO KEY UPDATE SKIP LOCKED
),
claimable AS (SELECT id FROM expired UNION ALL SELECT id FROM pending)
UPDATE judges_work w SET state = 'running', fence = w.fence + 1,
    lease_until = now() + make_interval(secs => :lease)
FROM claimable, judges_campaign c
WHERE w.id = claimable.id AND c.id = w.campaign_id AND c.state = 'running'
RETURNING w.id, w.pair_id, w.fence, w.attempt_base;
