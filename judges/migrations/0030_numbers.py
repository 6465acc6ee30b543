"""Campaigns are numbered from 1 in each collection (docs/adr/0116)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

# Existing rows are numbered in the order in which they were made.
NUMBER_ROWS = """
UPDATE judges_campaign r SET number = n.number FROM (
    SELECT id, row_number() OVER (PARTITION BY collection_id ORDER BY id) AS number FROM judges_campaign) n
WHERE n.id = r.id;
INSERT INTO corpus_lastnumber (collection_id, kind, number)
SELECT collection_id, 'judges_campaign', max(number) FROM judges_campaign GROUP BY 1
"""
FORGET = "DELETE FROM corpus_lastnumber WHERE kind = 'judges_campaign'"


class Migration(migrations.Migration):

    dependencies = [
        ('corpus', '0026_numbers'),
        ('judges', '0029_windows'),
    ]

    operations = [
        migrations.AddField(
            model_name='campaign',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        migrations.RunSQL(NUMBER_ROWS, FORGET),
        pgtrigger.migrations.AddTrigger(
            model_name='campaign',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='d5a7a221fc570ce8c48553800d389492e298b3ce', operation='INSERT', pgid='pgtrigger_number_06f1a', table='judges_campaign', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='campaign',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='campaign_number'),
        ),
    ]
