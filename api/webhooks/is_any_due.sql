-- Whether a delivery that is the earliest pending one of its subject is due now. Reads only.
SELECT EXISTS (
    SELECT FROM api_webhook w JOIN api_webhookdelivery delivery ON delivery.webhook_id = w.id
    WHERE w.disabled = '' AND delivery.state = 'pending' AND delivery.due_at <= statement_timestamp() AND NOT EXISTS (
        SELECT FROM api_webhookdelivery earlier
        WHERE earlier.webhook_id = delivery.webhook_id AND earlier.subject = delivery.subject
          AND earlier.state = 'pending' AND earlier.id < delivery.id));
