-- Delete what ended long ago and what lost its webhook, which nothing else deletes: there is no foreign key (ADR 0091).
-- Events that are told once stay. Lock order: attempts, deliveries.
WITH old AS (
    (SELECT id FROM api_webhookdelivery WHERE ended_at < :before AND once = '' LIMIT :most)
    UNION (SELECT d.id FROM api_webhookdelivery d
           WHERE NOT EXISTS (SELECT FROM api_webhook w WHERE w.id = d.webhook_id) LIMIT :most)
), log AS (
    DELETE FROM api_webhookattempt WHERE delivery_id IN (SELECT id FROM old)
)
DELETE FROM api_webhookdelivery WHERE id IN (SELECT id FROM old);
