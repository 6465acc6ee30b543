-- Claim due deliveries; of each subject only the earliest pending one, so that later ones wait for it. Open requests
-- count against the limit of their webhook. SKIP LOCKED: two workers at once claim different deliveries, and neither
-- waits. Lock order: deliveries only.
WITH due AS (
    SELECT d.id FROM api_webhook w
    LEFT JOIN unnest(:webhooks::bigint[], :counts::bigint[]) AS out (webhook, requests) ON out.webhook = w.id
    CROSS JOIN LATERAL (
        SELECT delivery.id FROM api_webhookdelivery delivery
        WHERE delivery.webhook_id = w.id AND delivery.state = 'pending' AND delivery.due_at <= statement_timestamp()
          AND NOT EXISTS (
            SELECT FROM api_webhookdelivery earlier
            WHERE earlier.webhook_id = delivery.webhook_id AND earlier.subject = delivery.subject
              AND earlier.state = 'pending' AND earlier.id < delivery.id)
        ORDER BY delivery.due_at, delivery.id LIMIT :each - coalesce(out.requests, 0) FOR UPDATE SKIP LOCKED) d
    WHERE w.disabled = '' LIMIT :most
)
UPDATE api_webhookdelivery d
SET fencing_token = d.fencing_token + 1, due_at = statement_timestamp() + make_interval(secs => :lease)
FROM due WHERE d.id = due.id RETURNING d.id;
