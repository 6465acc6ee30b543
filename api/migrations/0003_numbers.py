"""Webhooks are told the number that a campaign, an export or a training has in its collection (docs/adr/0116).

`subject` and `once` keep primary keys: they are not shown, and what was told once must not be told again.
"""

from django.db import migrations

CAMPAIGN = """
CREATE OR REPLACE FUNCTION tell_campaign_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(
        NEW.collection_id,
        CASE WHEN NEW.state IN ('finished', 'cancelled') THEN 'campaign.ended' ELSE 'campaign.stopped' END,
        'campaign:' || NEW.id,
        jsonb_build_object('campaign', NEW.{number}, 'state', NEW.state, 'policy', NEW.policy, 'panel', NEW.panel,
            'stopped_by', CASE WHEN NEW.state = 'budget' THEN NEW.stopped_by ELSE '' END,
            'paused_because', CASE WHEN NEW.state = 'paused' THEN NEW.paused_because ELSE '' END));
    RETURN NULL;
END $$
"""

TASKS = """
CREATE OR REPLACE FUNCTION tell_tasks_resolved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM api_webhook WHERE disabled = '' AND 'task.resolved' = ANY (events)) THEN
        INSERT INTO api_webhookdelivery (webhook_id, event, subject, data)
        SELECT w.id, 'task.resolved', 'task:' || after.id, jsonb_build_object(
            'task', after.id, 'pair', after.pair_id, 'query', q.external_id, 'document', d.external_id,
            'reason', after.reason, 'campaign', c.{number})
        FROM changed after JOIN original before ON before.id = after.id AND before.state <> 'settled'
        JOIN api_webhook w ON w.collection_id = after.collection_id AND w.disabled = ''
            AND 'task.resolved' = ANY (w.events)
        JOIN corpus_pair p ON p.id = after.pair_id
        JOIN corpus_query q ON q.id = p.query_id JOIN corpus_document d ON d.id = p.document_id
        LEFT JOIN judges_campaign c ON c.id = after.campaign
        WHERE after.state = 'settled' ORDER BY after.id;
    END IF;
    RETURN NULL;
END $$
"""

ALARM = """
CREATE OR REPLACE FUNCTION tell_audit_alarm() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(
        c.collection_id, 'audit.alarm', 'campaign:' || c.id,
        jsonb_build_object('campaign', c.{number}, 'route', substr(NEW.key, 9)),
        'audit.alarm:' || c.id || ':' || substr(NEW.key, 9))
    FROM judges_campaign c WHERE c.id = NEW.campaign_id;
    RETURN NULL;
END $$
"""

EXPORT = """
CREATE OR REPLACE FUNCTION tell_export_ready() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(NEW.collection_id, 'export.ready', 'export:' || NEW.id, jsonb_build_object(
        'export', NEW.{number}, 'format', NEW.format,
        'files', jsonb_path_query_array(NEW.manifest, '$.files[*].name')));
    RETURN NULL;
END $$
"""

TRAINING = """
CREATE OR REPLACE FUNCTION tell_training_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(NEW.collection_id, 'training.ended', 'training:' || NEW.id, jsonb_build_object(
        'training', NEW.{number}, 'state', NEW.state, 'recipe', NEW.options ->> 'recipe', 'error', NEW.error,
        'made_by', NEW.made_by));
    RETURN NULL;
END $$
"""

# As annotation.0037_numbers does for its own: entries call a training by its number.
RENAME = """
ALTER TABLE annotation_auditentry DISABLE TRIGGER USER;
UPDATE annotation_auditentry e SET details = jsonb_set(e.details, '{job}', to_jsonb(r.{new})) FROM training_job r
WHERE e.act LIKE 'training.%' AND e.details -> 'job' = to_jsonb(r.{old}) AND r.collection_id = e.collection_id;
ALTER TABLE annotation_auditentry ENABLE TRIGGER USER
"""


def rename(new: str, old: str) -> str:
    return RENAME.replace("{new}", new).replace("{old}", old)


def told(function: str) -> migrations.RunSQL:
    return migrations.RunSQL(function.replace("{number}", "number"), function.replace("{number}", "id"))


class Migration(migrations.Migration):
    dependencies = [
        ("api", "0002_webhooks"),
        ("annotation", "0037_numbers"),
        ("judges", "0030_numbers"),
        ("training", "0007_numbers"),
    ]

    operations = [
        told(CAMPAIGN), told(TASKS), told(ALARM), told(EXPORT), told(TRAINING),
        migrations.RunSQL(rename("number", "id"), rename("id", "number")),
    ]
