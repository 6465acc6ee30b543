"""Evaluations of answers, jobs with agents and syntheses are numbered from 1 in each collection (docs/adr/0116)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from corpus.migrations._numbers import number_rows, rename_entries


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0037_numbers'),
        ('benchmark', '0017_numbers'),
        ('corpus', '0026_numbers'),
    ]

    operations = [
        migrations.AddField(
            model_name='agentjob',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        migrations.AddField(
            model_name='answerevaluation',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        migrations.AddField(
            model_name='synthesis',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        number_rows("benchmark_answerevaluation"),
        number_rows("benchmark_agentjob"),
        number_rows("benchmark_synthesis"),
        pgtrigger.migrations.AddTrigger(
            model_name='agentjob',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='49d5cc6d82f1313127e8d7283f96a3c93b7abc4b', operation='INSERT', pgid='pgtrigger_number_3a121', table='benchmark_agentjob', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='answerevaluation',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='eebcd297e0bd57b78019e30602b046e79ec3a70a', operation='INSERT', pgid='pgtrigger_number_11a8d', table='benchmark_answerevaluation', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='synthesis',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='acc321a07638a2726210c0e0b953b7cf00f5cea1', operation='INSERT', pgid='pgtrigger_number_ee9a5', table='benchmark_synthesis', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='agentjob',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='agent_job_number'),
        ),
        migrations.AddConstraint(
            model_name='answerevaluation',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='answer_evaluation_number'),
        ),
        migrations.AddConstraint(
            model_name='synthesis',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='synthesis_number'),
        ),
        rename_entries("benchmark_answerevaluation", "answers.%", "evaluation"),
        rename_entries("benchmark_agentjob", "agents.%", "job"),
        rename_entries("benchmark_agentjob", "references.%", "job"),
        rename_entries("benchmark_synthesis", "synthesis.%", "synthesis"),
    ]
