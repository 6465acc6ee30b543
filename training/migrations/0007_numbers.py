"""Trainings and other jobs with models are numbered from 1 in each collection (docs/adr/0116)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

# Existing rows are numbered in the order in which they were made; those without a collection among each other.
NUMBER_ROWS = """
UPDATE training_job r SET number = n.number FROM (
    SELECT id, row_number() OVER (PARTITION BY collection_id ORDER BY id) AS number FROM training_job) n
WHERE n.id = r.id;
INSERT INTO corpus_lastnumber (collection_id, kind, number)
SELECT collection_id, 'training_job', max(number) FROM training_job GROUP BY 1
"""
FORGET = "DELETE FROM corpus_lastnumber WHERE kind = 'training_job'"


class Migration(migrations.Migration):

    dependencies = [
        ('corpus', '0026_numbers'),
        ('training', '0006_planned_points'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        migrations.RunSQL(NUMBER_ROWS, FORGET),
        pgtrigger.migrations.AddTrigger(
            model_name='job',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='5c08b5586102a81202fb1ce7d97d4d2625570cd0', operation='INSERT', pgid='pgtrigger_number_bd148', table='training_job', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='job',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='job_number', nulls_distinct=False),
        ),
    ]
