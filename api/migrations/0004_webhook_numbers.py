"""Webhooks are numbered from 1 in each collection (docs/adr/0116)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from corpus.migrations._numbers import number_rows, rename_entries


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0037_numbers'),
        ('api', '0003_numbers'),
        ('corpus', '0026_numbers'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='webhook',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        number_rows("api_webhook"),
        pgtrigger.migrations.AddTrigger(
            model_name='webhook',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='00a6c83b6b9d80b57a083f33a6b96a335c0eb1d7', operation='INSERT', pgid='pgtrigger_number_863fe', table='api_webhook', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='webhook_number'),
        ),
        rename_entries("api_webhook", "webhook.%", "webhook"),
    ]
