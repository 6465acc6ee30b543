"""Hole fillings and benchmark reports are numbered from 1 in each collection (docs/adr/0116)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from corpus.migrations._numbers import number_rows, rename_entries


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0037_numbers'),
        ('benchmark', '0016_run_search'),
        ('corpus', '0026_numbers'),
    ]

    operations = [
        migrations.AddField(
            model_name='filling',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        migrations.AddField(
            model_name='report',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        number_rows("benchmark_filling"),
        number_rows("benchmark_report"),
        pgtrigger.migrations.AddTrigger(
            model_name='filling',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='fc7eeb9e365b8c973c6deb510d4f4e0690e5cfff', operation='INSERT', pgid='pgtrigger_number_b337a', table='benchmark_filling', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='report',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='a6f2bee41144ace662b62cf2984fd7e5cc1bcfc4', operation='INSERT', pgid='pgtrigger_number_de632', table='benchmark_report', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='filling',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='filling_number'),
        ),
        migrations.AddConstraint(
            model_name='report',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='report_number'),
        ),
        rename_entries("benchmark_filling", "filling.%", "filling"),
        rename_entries("benchmark_report", "report.asked", "report"),
    ]
