"""Training jobs and models. The tables of version 0.1.0."""

import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from corpus.table_changes import ChangeTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('corpus', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('done', models.PositiveBigIntegerField(default=0)),
                ('total', models.PositiveBigIntegerField(default=0)),
                ('phase', models.CharField(blank=True, help_text='What it is doing now; done and total count that.', max_length=200)),
                ('error', models.TextField(blank=True, help_text='Why it ended badly, one line.')),
                ('attempts', models.PositiveSmallIntegerField(default=0, help_text='Claims since it last made progress.')),
                ('fencing_token', models.PositiveIntegerField(default=0, help_text='Rises with every claim; older holders lose.')),
                ('lease_until', models.DateTimeField(help_text='Renewed by its holder; after it anybody may claim it.', null=True)),
                ('cancel_asked', models.BooleanField(default=False, help_text='Its holder saves what it has and ends it.')),
                ('made_by', models.CharField(blank=True, max_length=150)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('started_at', models.DateTimeField(help_text='The first claim.', null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('number', models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.')),
                ('kind', models.CharField(choices=[('train', 'training'), ('evaluate', 'evaluation'), ('rerank', 'reranking'), ('order', 'queue reordering'), ('generate', 'writing'), ('losses', 'comparison of losses')], default='train', max_length=10)),
                ('options', models.JSONField(default=dict, help_text='What the subprocess is asked, as in job.json.')),
                ('device', models.CharField(default='cpu', help_text='cpu or cuda.', max_length=4)),
                ('folder', models.CharField(max_length=500)),
                ('state', models.CharField(choices=[('queued', 'waiting'), ('running', 'running'), ('finished', 'finished'), ('failed', 'failed'), ('cancelled', 'cancelled'), ('refused', 'refused')], default='queued', max_length=9)),
                ('words', models.CharField(blank=True, help_text='What stands beside its figures: tiny model, CPU.', max_length=50)),
                ('result', models.JSONField(default=dict)),
                ('collection', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='training_jobs', to='corpus.collection')),
            ],
        ),
        migrations.CreateModel(
            name='LearningCurve',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.')),
                ('recipe', models.CharField(max_length=30)),
                ('order', models.CharField(choices=[('time', 'time of labelling'), ('random', 'random')], default='time', max_length=6)),
                ('out', models.CharField(blank=True, help_text='Where a command writes; empty: started on a page.', max_length=500)),
                ('made_by', models.CharField(blank=True, max_length=150)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='learning_curves', to='corpus.collection')),
            ],
        ),
        migrations.CreateModel(
            name='CurvePoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('asked', models.PositiveIntegerField()),
                ('labels', models.PositiveIntegerField(null=True)),
                ('queries', models.PositiveIntegerField(null=True)),
                ('job', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='curve_point', to='training.job')),
                ('curve', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='points', to='training.learningcurve')),
            ],
        ),
        migrations.CreateModel(
            name='Model',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('recipe', models.CharField(max_length=30)),
                ('base', models.CharField(max_length=300)),
                ('folder', models.CharField(max_length=500)),
                ('words', models.CharField(blank=True, max_length=50)),
                ('summary', models.JSONField(default=dict, help_text='Evaluation, calibration, gain and checkpoint, as published.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='trained_models', to='corpus.collection')),
                ('job', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='model', to='training.job')),
            ],
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(fields=['collection', '-id'], name='job_newest'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('state__in', ['queued', 'running'])), fields=['id'], name='job_waiting'),
        ),
        migrations.AddConstraint(
            model_name='job',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='job_number', nulls_distinct=False),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='job',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='5c08b5586102a81202fb1ce7d97d4d2625570cd0', operation='INSERT', pgid='pgtrigger_number_bd148', table='training_job', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='learningcurve',
            constraint=models.UniqueConstraint(condition=models.Q(('out', ''), _negated=True), fields=('out',), name='learning_curve_out'),
        ),
        migrations.AddConstraint(
            model_name='learningcurve',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='learning_curve_number', nulls_distinct=False),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='learningcurve',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='a312bcffa4ca5e9ce336066ec2befe821336d910', operation='INSERT', pgid='pgtrigger_number_0b3ea', table='training_learningcurve', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='curvepoint',
            constraint=models.UniqueConstraint(fields=('curve', 'asked'), name='curve_point_once'),
        ),
        migrations.AddConstraint(
            model_name='model',
            constraint=models.UniqueConstraint(fields=('collection', 'name'), name='model_name'),
        ),
    ]

    operations = [ChangeTables(operations)]
