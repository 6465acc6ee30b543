-- Whether any delivery is due now: the earliest pending one of its subject. Reads only.
SELECT EXISTS (
    SELECT FROM api_webhook w JOIN api_webhookdelivery one ON one.webhook_id = w.id
    WHERE w.disabled = '' AND one.state = 'pending' AND one.due_at <= statement_timestamp() AND NOT EXISTS (
        SELECT FROM api_webhookdelivery earlier
        WHERE earlier.webhook_id = one.webhook_id AND earlier.subject = one.subject
          AND earlier.state = 'pending' AND earlier.id < one.id));
