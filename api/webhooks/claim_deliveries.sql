-- Claim deliveries that are due; of each subject the earliest pending one alone: whoever claims it holds up the
-- later ones. Requests that are out already count against those of their webhook. SKIP LOCKED: two workers at
-- the same moment take different deliveries, and neither waits. Lock order: deliveries alone.
WITH due AS (
    SELECT d.id FROM api_webhook w
    LEFT JOIN unnest(:webhooks::bigint[], :counts::bigint[]) AS out (webhook, requests) ON out.webhook = w.id
    CROSS JOIN LATERAL (
        SELECT one.id FROM api_webhookdelivery one
        WHERE one.webhook_id = w.id AND one.state = 'pending' AND one.due_at <= statement_timestamp() AND NOT EXISTS (
            SELECT FROM api_webhookdelivery earlier
            WHERE earlier.webhook_id = one.webhook_id AND earlier.subject = one.subject
              AND earlier.state = 'pending' AND earlier.id < one.id)
        ORDER BY one.due_at, one.id LIMIT :each - coalesce(out.requests, 0) FOR UPDATE SKIP LOCKED) d
    WHERE w.disabled = '' LIMIT :most
)
UPDATE api_webhookdelivery d
SET fencing_token = d.fencing_token + 1, due_at = statement_timestamp() + make_interval(secs => :lease)
FROM due WHERE d.id = due.id RETURNING d.id;
