import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


# Where events come from. A trigger sees every way in which a row changes, in the transaction of the change; it writes
# only where a webhook of the collection wants the event, all rows of a statement by one insert, and takes no lock.
WRITE = """
CREATE FUNCTION write_webhook_event(
    of_collection bigint, of_event text, of_subject text, what jsonb, only_once text DEFAULT '') RETURNS void
LANGUAGE sql AS $$
    INSERT INTO api_webhookdelivery (webhook_id, event, subject, data, once)
    SELECT w.id, of_event, of_subject, what, only_once FROM api_webhook w
    WHERE w.collection_id = of_collection AND w.disabled = '' AND of_event = ANY (w.events)
    ON CONFLICT DO NOTHING
$$;
"""

CAMPAIGN = """
CREATE FUNCTION tell_campaign_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(
        NEW.collection_id,
        CASE WHEN NEW.state IN ('finished', 'cancelled') THEN 'campaign.ended' ELSE 'campaign.stopped' END,
        'campaign:' || NEW.id,
        jsonb_build_object('campaign', NEW.id, 'state', NEW.state, 'policy', NEW.policy, 'panel', NEW.panel,
            'stopped_by', CASE WHEN NEW.state = 'budget' THEN NEW.stopped_by ELSE '' END,
            'paused_because', CASE WHEN NEW.state = 'paused' THEN NEW.paused_because ELSE '' END));
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_campaign_state AFTER UPDATE OF state ON judges_campaign FOR EACH ROW
WHEN (OLD.state IS DISTINCT FROM NEW.state AND NEW.state <> 'running' AND NEW.policy <> 'retrieval')
EXECUTE FUNCTION tell_campaign_state();
"""

# For each statement and not for each row: thousands of tasks may be resolved by one (exclusion of judgments).
TASKS = """
CREATE FUNCTION tell_tasks_resolved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM api_webhook WHERE disabled = '' AND 'task.resolved' = ANY (events)) THEN
        INSERT INTO api_webhookdelivery (webhook_id, event, subject, data)
        SELECT w.id, 'task.resolved', 'task:' || after.id, jsonb_build_object(
            'task', after.id, 'pair', after.pair_id, 'query', q.external_id, 'document', d.external_id,
            'reason', after.reason, 'campaign', after.campaign)
        FROM changed after JOIN original before ON before.id = after.id AND before.state <> 'settled'
        JOIN api_webhook w ON w.collection_id = after.collection_id AND w.disabled = ''
            AND 'task.resolved' = ANY (w.events)
        JOIN corpus_pair p ON p.id = after.pair_id
        JOIN corpus_query q ON q.id = p.query_id JOIN corpus_document d ON d.id = p.document_id
        WHERE after.state = 'settled' ORDER BY after.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_tasks_resolved AFTER UPDATE ON corpus_item
REFERENCING OLD TABLE AS original NEW TABLE AS changed FOR EACH STATEMENT
EXECUTE FUNCTION tell_tasks_resolved();
"""

# A route that fails its audit while its campaign runs is stopped by a worker, which counts that
# (judges.campaigns.route_breakers); what people answer later is looked through by api.webhooks.alarms.
ALARM = """
CREATE FUNCTION tell_audit_alarm() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(
        c.collection_id, 'audit.alarm', 'campaign:' || c.id,
        jsonb_build_object('campaign', c.id, 'route', substr(NEW.key, 9)),
        'audit.alarm:' || c.id || ':' || substr(NEW.key, 9))
    FROM judges_campaign c WHERE c.id = NEW.campaign_id;
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_audit_alarm AFTER INSERT ON judges_tally FOR EACH ROW
WHEN (NEW.key LIKE 'stopped:%' AND NEW.value > 0)
EXECUTE FUNCTION tell_audit_alarm();
"""

EXPORT = """
CREATE FUNCTION tell_export_ready() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(NEW.collection_id, 'export.ready', 'export:' || NEW.id, jsonb_build_object(
        'export', NEW.id, 'format', NEW.format,
        'files', jsonb_path_query_array(NEW.manifest, '$.files[*].name')));
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_export_ready AFTER UPDATE OF state ON annotation_snapshot FOR EACH ROW
WHEN (OLD.state <> 'ready' AND NEW.state = 'ready')
EXECUTE FUNCTION tell_export_ready();
"""

TRAINING = """
CREATE FUNCTION tell_training_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(NEW.collection_id, 'training.ended', 'training:' || NEW.id, jsonb_build_object(
        'training', NEW.id, 'state', NEW.state, 'recipe', NEW.options ->> 'recipe', 'error', NEW.error,
        'made_by', NEW.made_by));
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_training_ended AFTER UPDATE OF state ON training_job FOR EACH ROW
WHEN (OLD.state IS DISTINCT FROM NEW.state AND NEW.kind = 'train' AND NEW.state NOT IN ('queued', 'running'))
EXECUTE FUNCTION tell_training_ended();
"""

TRIGGERS = {
    "webhook_campaign_state": ("judges_campaign", "tell_campaign_state", CAMPAIGN),
    "webhook_tasks_resolved": ("corpus_item", "tell_tasks_resolved", TASKS),
    "webhook_audit_alarm": ("judges_tally", "tell_audit_alarm", ALARM),
    "webhook_export_ready": ("annotation_snapshot", "tell_export_ready", EXPORT),
    "webhook_training_ended": ("training_job", "tell_training_ended", TRAINING),
}


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0032_import_language'),
        ('api', '0001_initial'),
        ('corpus', '0023_aspect_reviews'),
        ('judges', '0026_web_search_role'),
        ('training', '0006_planned_points'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.CharField(max_length=2000)),
                ('description', models.CharField(blank=True, max_length=200)),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('campaign.ended', 'Campaign ended: finished or cancelled'), ('campaign.stopped', 'Campaign stopped: by its budget, or paused'), ('task.resolved', 'Task resolved by people'), ('audit.alarm', 'Label audit alarm: a route is wrong too often'), ('export.ready', 'Export ready'), ('training.ended', 'Training ended: finished, failed or cancelled')], max_length=20), size=None)),
                ('secret', models.TextField(help_text='Encrypted with a key from SECRET_KEY; shown once.')),
                ('former_secret', models.TextField(blank=True, help_text='Encrypted; signs beside the new one for a while.')),
                ('former_secret_until', models.DateTimeField(null=True)),
                ('disabled', models.CharField(blank=True, choices=[('person', 'disabled by an admin'), ('failing', 'every delivery failed for days'), ('gone', 'the receiver answered 410 Gone')], db_default='', help_text='Why nothing is sent; empty: it is.', max_length=7)),
                ('failing_since', models.DateTimeField(help_text='The first failure since the last success.', null=True)),
                ('alarms_looked_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='Until when answers to label audits were looked through.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='corpus.collection')),
                ('made_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message_id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), help_text='The same in every attempt, for the receiver.')),
                ('event', models.CharField(max_length=20)),
                ('subject', models.CharField(help_text='What it is about, as campaign:7: the unit of order.', max_length=40)),
                ('data', models.JSONField(default=dict)),
                ('once', models.CharField(blank=True, db_default='', help_text='Of an event that is told once: which one it is.', max_length=100)),
                ('state', models.CharField(choices=[('pending', 'pending'), ('delivered', 'delivered'), ('failed', 'failed')], db_default='pending', max_length=9)),
                ('attempts', models.PositiveSmallIntegerField(db_default=0, help_text='Failed ones since it was last begun.')),
                ('fencing_token', models.PositiveIntegerField(db_default=0, help_text='Rises with every claim; older holders lose.')),
                ('due_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ended_at', models.DateTimeField(null=True)),
                ('webhook', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='api.webhook')),
            ],
            options={
                'verbose_name_plural': 'webhook deliveries',
            },
        ),
        migrations.CreateModel(
            name='WebhookAttempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('status', models.PositiveSmallIntegerField(help_text='Of HTTP; null: no answer came.', null=True)),
                ('milliseconds', models.PositiveIntegerField()),
                ('problem', models.CharField(blank=True, choices=[('status', 'the receiver did not answer with a status from 200 to 299'), ('redirect', 'the receiver redirects, which is not followed'), ('timeout', 'no answer within 10 seconds'), ('name', 'the name of the host could not be found'), ('address', 'the address is not on the public network'), ('connection', 'the connection failed'), ('secret', 'the secret cannot be decrypted: SECRET_KEY changed; replace the secret')], max_length=10)),
                ('answer', models.TextField(blank=True, help_text='The first 1,000 bytes, or the error of the connection.')),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='log', to='api.webhookdelivery')),
            ],
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.CheckConstraint(condition=models.Q(('events', []), _negated=True), name='webhook_events'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(condition=models.Q(('state', 'pending')), fields=['webhook', 'due_at'], name='delivery_due'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(condition=models.Q(('state', 'pending')), fields=['webhook', 'subject', 'id'], name='delivery_order'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['webhook', '-id'], name='delivery_newest'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(condition=models.Q(('ended_at__isnull', False)), fields=['ended_at'], name='delivery_ended'),
        ),
        migrations.AddConstraint(
            model_name='webhookdelivery',
            constraint=models.UniqueConstraint(condition=models.Q(('once', ''), _negated=True), fields=('webhook', 'once'), name='delivery_once'),
        ),
        migrations.RunSQL(WRITE, "DROP FUNCTION write_webhook_event"),
        *(
            migrations.RunSQL(forwards, f"DROP TRIGGER {trigger} ON {table}; DROP FUNCTION {function};")
            for trigger, (table, function, forwards) in TRIGGERS.items()
        ),
    ]
