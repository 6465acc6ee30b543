-- Where events of webhooks come from. A trigger sees every way in which a row changes, in the transaction of the change; it
-- writes only where a webhook of the collection wants the event, all rows of a statement by one insert, and takes no
-- lock. `subject` and `once` hold primary keys, which are not shown; `data` holds numbers (docs/adr/0007).

CREATE FUNCTION write_webhook_event(
    of_collection bigint, of_event text, of_subject text, what jsonb, only_once text DEFAULT '') RETURNS void
LANGUAGE sql AS $$
    INSERT INTO api_webhookdelivery (webhook_id, event, subject, data, once)
    SELECT w.id, of_event, of_subject, what, only_once FROM api_webhook w
    WHERE w.collection_id = of_collection AND w.disabled = '' AND of_event = ANY (w.events)
    ON CONFLICT DO NOTHING
$$;

CREATE FUNCTION tell_campaign_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(
        NEW.collection_id,
        CASE WHEN NEW.state IN ('finished', 'cancelled') THEN 'campaign.ended' ELSE 'campaign.stopped' END,
        'campaign:' || NEW.id,
        jsonb_build_object('campaign', NEW.number, 'state', NEW.state, 'policy', NEW.policy, 'panel', NEW.panel,
            'stopped_by', CASE WHEN NEW.state = 'budget' THEN NEW.stopped_by ELSE '' END,
            'paused_because', CASE WHEN NEW.state = 'paused' THEN NEW.paused_because ELSE '' END));
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_campaign_state AFTER UPDATE OF state ON judges_campaign FOR EACH ROW
WHEN (OLD.state IS DISTINCT FROM NEW.state AND NEW.state <> 'running' AND NEW.policy <> 'retrieval')
EXECUTE FUNCTION tell_campaign_state();

-- For each statement and not for each row: thousands of tasks may be resolved by one (exclusion of judgments).

CREATE FUNCTION tell_tasks_resolved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM api_webhook WHERE disabled = '' AND 'task.resolved' = ANY (events)) THEN
        INSERT INTO api_webhookdelivery (webhook_id, event, subject, data)
        SELECT w.id, 'task.resolved', 'task:' || after.id, jsonb_build_object(
            'task', after.id, 'pair', after.pair_id, 'query', q.external_id, 'document', d.external_id,
            'reason', after.reason, 'campaign', c.number)
        FROM changed after JOIN original before ON before.id = after.id AND before.state <> 'settled'
        JOIN api_webhook w ON w.collection_id = after.collection_id AND w.disabled = ''
            AND 'task.resolved' = ANY (w.events)
        JOIN corpus_pair p ON p.id = after.pair_id
        JOIN corpus_query q ON q.id = p.query_id JOIN corpus_document d ON d.id = p.document_id
        LEFT JOIN judges_campaign c ON c.id = after.campaign
        WHERE after.state = 'settled' ORDER BY after.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_tasks_resolved AFTER UPDATE ON corpus_item
REFERENCING OLD TABLE AS original NEW TABLE AS changed FOR EACH STATEMENT
EXECUTE FUNCTION tell_tasks_resolved();

-- A route that fails its audit while its campaign runs is stopped by a worker, which counts that
-- (judges.engine.route_breakers); what people answer later is looked through by api.webhooks.alarms.

CREATE FUNCTION tell_audit_alarm() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(
        c.collection_id, 'audit.alarm', 'campaign:' || c.id,
        jsonb_build_object('campaign', c.number, 'route', substr(NEW.key, 9)),
        'audit.alarm:' || c.id || ':' || substr(NEW.key, 9))
    FROM judges_campaign c WHERE c.id = NEW.campaign_id;
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_audit_alarm AFTER INSERT ON judges_tally FOR EACH ROW
WHEN (NEW.key LIKE 'stopped:%' AND NEW.value > 0)
EXECUTE FUNCTION tell_audit_alarm();

CREATE FUNCTION tell_export_ready() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(NEW.collection_id, 'export.ready', 'export:' || NEW.id, jsonb_build_object(
        'export', NEW.number, 'format', NEW.format,
        'files', jsonb_path_query_array(NEW.manifest, '$.files[*].name')));
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_export_ready AFTER UPDATE OF state ON annotation_snapshot FOR EACH ROW
WHEN (OLD.state <> 'ready' AND NEW.state = 'ready')
EXECUTE FUNCTION tell_export_ready();

CREATE FUNCTION tell_training_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(NEW.collection_id, 'training.ended', 'training:' || NEW.id, jsonb_build_object(
        'training', NEW.number, 'state', NEW.state, 'recipe', NEW.options ->> 'recipe', 'error', NEW.error,
        'made_by', NEW.made_by));
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_training_ended AFTER UPDATE OF state ON training_job FOR EACH ROW
WHEN (OLD.state IS DISTINCT FROM NEW.state AND NEW.kind = 'train' AND NEW.state NOT IN ('queued', 'running'))
EXECUTE FUNCTION tell_training_ended();
