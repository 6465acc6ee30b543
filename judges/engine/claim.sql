-- Claim up to `n` pairs: expired leases first, since those pairs wait longest. SKIP LOCKED lets workers claim
-- beside each other; the fence rises with each claim, and every later write must name it. Lock order: work rows
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
chosen AS (SELECT id FROM expired UNION ALL SELECT id FROM pending)
UPDATE judges_work w SET state = 'running', fence = w.fence + 1,
    lease_until = now() + make_interval(secs => :lease)
FROM chosen, judges_campaign c
WHERE w.id = chosen.id AND c.id = w.campaign_id AND c.state = 'running'
RETURNING w.id, w.pair_id, w.fence, w.attempt_base;
