"""Tokens and webhooks, and triggers that write events of webhooks. The tables of version 0.1.0."""

from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from corpus.table_changes import ChangeTables

UNDO = """
DROP FUNCTION tell_campaign_state, tell_tasks_resolved, tell_audit_alarm, tell_export_ready, tell_training_ended CASCADE;
DROP FUNCTION write_webhook_event
"""


class Migration(migrations.Migration):

    initial = True

    # What version 0.1.0 has applied.
    replaces = [
        ('api', '0001_initial'),
        ('api', '0002_database'),
    ]

    dependencies = [
        ('annotation', '0001_initial'),
        ('corpus', '0001_initial'),
        ('judges', '0001_initial'),
        ('training', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AccessToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('digest', models.CharField(help_text='SHA-256 of the token, in hexadecimal digits.', max_length=64, unique=True)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('read', 'Read: everything that your role may see'), ('judge', 'Judge: claim pairs and submit judgments under your name'), ('manage', 'Manage: import, start campaigns, export; everything that an admin may do')], max_length=6), size=None)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(null=True)),
                ('last_used_at', models.DateTimeField(help_text='To the minute.', null=True)),
                ('collection', models.ForeignKey(help_text='Null: all collections of the person.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.collection')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='access_tokens', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='IdempotentAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=255)),
                ('request', models.CharField(help_text='SHA-256 of the method, the address and the body.', max_length=64)),
                ('status', models.PositiveSmallIntegerField(default=0)),
                ('content_type', models.CharField(default='', max_length=100)),
                ('body', models.BinaryField(default=b'')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('token', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='api.accesstoken')),
            ],
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.')),
                ('url', models.CharField(max_length=2000)),
                ('description', models.CharField(blank=True, max_length=200)),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('campaign.ended', 'Campaign ended: finished or cancelled'), ('campaign.stopped', 'Campaign stopped: by its budget, or paused'), ('task.resolved', 'Task resolved by people'), ('audit.alarm', 'Label audit alarm: a route is wrong too often'), ('export.ready', 'Export ready'), ('training.ended', 'Training ended: finished, failed or cancelled')], max_length=20), size=None)),
                ('secret', models.TextField(help_text='Encrypted with a key from SECRET_KEY; shown once.')),
                ('former_secret', models.TextField(blank=True, help_text='Encrypted; also signs for a while.')),
                ('former_secret_until', models.DateTimeField(null=True)),
                ('disabled', models.CharField(blank=True, choices=[('person', 'disabled by an admin'), ('failing', 'every delivery failed for days'), ('gone', 'the receiver answered 410 Gone')], db_default='', help_text='Why nothing is sent; empty: active.', max_length=7)),
                ('failing_since', models.DateTimeField(help_text='The first failure since the last success.', null=True)),
                ('alarms_looked_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='Up to when answers to label audits were evaluated.')),
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
                ('subject', models.CharField(help_text='What it is about, such as campaign:7; deliveries of a subject are sent in order.', max_length=40)),
                ('data', models.JSONField(default=dict)),
                ('once', models.CharField(blank=True, db_default='', help_text='Key of an event that is delivered only once.', max_length=100)),
                ('state', models.CharField(choices=[('pending', 'pending'), ('delivered', 'delivered'), ('failed', 'failed')], db_default='pending', max_length=9)),
                ('attempts', models.PositiveSmallIntegerField(db_default=0, help_text='Failed attempts since it was last queued.')),
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
                ('status', models.PositiveSmallIntegerField(help_text='HTTP status; null: no response.', null=True)),
                ('milliseconds', models.PositiveIntegerField()),
                ('problem', models.CharField(blank=True, choices=[('status', 'the receiver did not answer with a status from 200 to 299'), ('redirect', 'the receiver redirects, which is not followed'), ('timeout', 'no answer within 10 seconds'), ('name', 'the name of the host could not be found'), ('address', 'the address is not on the public network'), ('connection', 'the connection failed'), ('secret', 'the secret cannot be decrypted: SECRET_KEY changed; replace the secret')], max_length=10)),
                ('answer', models.TextField(blank=True, help_text='First 1,000 bytes of the response, or the error of the connection.')),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='log', to='api.webhookdelivery')),
            ],
        ),
        migrations.AddConstraint(
            model_name='accesstoken',
            constraint=models.CheckConstraint(condition=models.Q(('scopes', []), _negated=True), name='access_token_scopes'),
        ),
        migrations.AddConstraint(
            model_name='idempotentanswer',
            constraint=models.UniqueConstraint(fields=('token', 'key'), name='stored_answer_key'),
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.CheckConstraint(condition=models.Q(('events', []), _negated=True), name='webhook_events'),
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='webhook_number'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='webhook',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='00a6c83b6b9d80b57a083f33a6b96a335c0eb1d7', operation='INSERT', pgid='pgtrigger_number_863fe', table='api_webhook', when='BEFORE')),
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
        migrations.RunSQL(Path(__file__).with_name("0001_events.sql").read_text(), UNDO),
    ]

    operations = [ChangeTables(operations)]
