"""Paired studies, gold samples and bulk actions are numbered from 1 in each collection (docs/adr/0116)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from corpus.migrations._numbers import number_rows, rename_entries


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0037_numbers'),
        ('annotation', '0038_more_numbers'),
        ('corpus', '0026_numbers'),
    ]

    operations = [
        migrations.AddField(
            model_name='bulkact',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        migrations.AddField(
            model_name='goldset',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        migrations.AddField(
            model_name='study',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        number_rows("annotation_study"),
        number_rows("annotation_goldset"),
        number_rows("annotation_bulkact"),
        pgtrigger.migrations.AddTrigger(
            model_name='bulkact',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='133d23f8ceac9a81e1c14956cbc77c513c3e86f2', operation='INSERT', pgid='pgtrigger_number_5d94e', table='annotation_bulkact', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='goldset',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='36e7bdffea75406c0b4be467582e4394c9aa12e6', operation='INSERT', pgid='pgtrigger_number_1e070', table='annotation_goldset', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='study',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='e7830545ed87b281d15a34b9727b3fc55e08bbd9', operation='INSERT', pgid='pgtrigger_number_b2e53', table='annotation_study', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='bulkact',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='bulk_act_number'),
        ),
        migrations.AddConstraint(
            model_name='goldset',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='gold_set_number'),
        ),
        migrations.AddConstraint(
            model_name='study',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='study_number'),
        ),
        rename_entries("annotation_study", "study.%", "study"),
        rename_entries("annotation_goldset", "gold.%", "gold"),
        rename_entries("annotation_bulkact", "pairs.%", "bulk"),
    ]
