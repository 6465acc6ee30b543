-- Campaigns with answers to their label audit since alarms were last evaluated for a webhook. Reads only.
SELECT DISTINCT a.campaign_id FROM api_webhook w
JOIN corpus_item i ON i.collection_id = w.collection_id AND i.state = 'settled' AND i.reason = 'audit'
    AND i.settled_at > w.alarms_looked_at - make_interval(secs => :overlap)
JOIN judges_audit a ON a.item_id = i.id
WHERE w.disabled = '' AND 'audit.alarm' = ANY (w.events);
