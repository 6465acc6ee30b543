-- Delete deliveries that ended long ago, and those without a webhook, to which they have no foreign key (ADR 0091).
-- Events that are delivered only once stay. Lock order: attempts, deliveries.
WITH old AS (
    (SELECT id FROM api_webhookdelivery WHERE ended_at < :before AND once = '' LIMIT :most)
    UNION (SELECT d.id FROM api_webhookdelivery d
           WHERE NOT EXISTS (SELECT FROM api_webhook w WHERE w.id = d.webhook_id) LIMIT :most)
), log AS (
    DELETE FROM api_webhookattempt WHERE delivery_id IN (SELECT id FROM old)
)
DELETE FROM api_webhookdelivery WHERE id IN (SELECT id FROM old);
