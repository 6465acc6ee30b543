"""Search endpoints and gates; kinds of runs, and what a run counts of an engine's answers."""

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from corpus.table_changes import ChangeTables


class Migration(migrations.Migration):

    # What instances between the releases have applied.
    replaces = [
        ('benchmark', '0002_static_embeddings'),
        ('benchmark', '0003_connect'),
    ]

    dependencies = [
        ('benchmark', '0001_initial'),
        ('corpus', '0003_after_0_1_0'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='counts',
            field=models.JSONField(default=dict, help_text='Of a search endpoint: empty, duplicates, without_id, without_text, new, changed.'),
        ),
        migrations.AlterField(
            model_name='run',
            name='kind',
            field=models.CharField(choices=[('imported', 'imported'), ('bm25', 'BM25'), ('static', 'static embeddings'), ('hybrid', 'hybrid'), ('rewrite', 'query rewriting'), ('reasoning', 'reasoning-based retrieval'), ('dense', 'dense'), ('rerank', 'reranked'), ('embedding', 'dense, model folder'), ('sparse', 'learned sparse, model folder'), ('rerank-folder', 'reranked, model folder'), ('search', 'search endpoint')], max_length=16),
        ),
        migrations.CreateModel(
            name='SearchEndpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, validators=[django.core.validators.RegexValidator('\\A[A-Za-z0-9][A-Za-z0-9._+-]{0,99}\\Z', 'Use letters, digits, . _ + and - (at most 100).')])),
                ('kind', models.CharField(help_text='A kind of search engine (benchmark.search_endpoints.kinds).', max_length=20)),
                ('settings', models.JSONField(default=dict, help_text='The options of the endpoint without name and kind.')),
                ('made_by', models.CharField(blank=True, max_length=150)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('changed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('is_deleted', models.BooleanField(default=False, help_text='Left out of every list; its runs stay.')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('is_deleted', False)), fields=('name',), name='search_endpoint_name')],
            },
        ),
        migrations.CreateModel(
            name='Gate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.')),
                ('options', models.JSONField(default=dict, help_text='measures, max_drop, confidence, weights.')),
                ('verdict', models.CharField(choices=[('pass', 'pass'), ('fail', 'fail'), ('cannot_tell', 'cannot tell')], max_length=11)),
                ('result', models.JSONField(default=dict, help_text='The document that the command `gate` prints.')),
                ('made_by', models.CharField(blank=True, max_length=150)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('against', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='benchmark.run')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='gates', to='corpus.collection')),
                ('filling', models.ForeignKey(help_text='The judging of the pairs that decide.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='benchmark.filling')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='benchmark.run')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('collection', 'number'), name='gate_number')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='gate',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='3b4b91cd8644cd590591351ce527e47bb184dcc9', operation='INSERT', pgid='pgtrigger_number_b5b2e', table='benchmark_gate', when='BEFORE')),
        ),
    ]

    operations = [ChangeTables(operations)]
