"""Stored results; retakes, quotas and deadlines of members, explanations of gold; inboxes; notes on pairs; comparisons of two documents; pushes to a hub; answers to comments and flags; viewers; shared pages."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from corpus.table_changes import ChangeTables


class Migration(migrations.Migration):

    # What instances between the releases have applied.
    replaces = [
        ('annotation', '0003_results'),
        ('annotation', '0004_first_class'),
        ('annotation', '0005_comparisons'),
    ]

    dependencies = [
        ('annotation', '0002_database'),
        ('corpus', '0003_after_0_1_0'),
        ('judges', '0003_after_0_1_0'),
    ]

    operations = [
        migrations.CreateModel(
            name='StoredResult',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=30)),
                ('key', models.CharField(help_text='Of the options.', max_length=64)),
                ('options', models.JSONField(default=dict)),
                ('values', models.JSONField(help_text='Null: not computed yet.', null=True)),
                ('at', models.DateTimeField(help_text='The moment whose data the values describe.', null=True)),
                ('failure', models.TextField(blank=True, db_default='', default='', help_text='Why it failed last, one line.')),
                ('collection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='results', to='corpus.collection')),
            ],
        ),
        migrations.DeleteModel(
            name='Computed',
        ),
        migrations.DeleteModel(
            name='StoredAgreement',
        ),
        migrations.AddConstraint(
            model_name='storedresult',
            constraint=models.UniqueConstraint(fields=('collection', 'kind', 'key'), name='stored_result_once'),
        ),
        migrations.AddField(
            model_name='membership',
            name='retake_asked_at',
            field=models.DateTimeField(help_text='When they asked to take the test again; null: not asked since they failed.', null=True),
        ),
        migrations.AddField(
            model_name='membership',
            name='daily_quota',
            field=models.PositiveIntegerField(help_text='The most pairs that they get in a day.', null=True),
        ),
        migrations.AddField(
            model_name='membership',
            name='total_quota',
            field=models.PositiveIntegerField(help_text='The most pairs that they get in this collection.', null=True),
        ),
        migrations.AddField(
            model_name='membership',
            name='last_day',
            field=models.DateField(help_text='The last day on which they get new pairs.', null=True),
        ),
        migrations.CreateModel(
            name='GoldExplanation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField()),
                ('written_by', models.CharField(blank=True, help_text='Its author, as the file names them.', max_length=200)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('pair', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='gold_explanation', to='corpus.pair')),
            ],
        ),
        migrations.AddField(
            model_name='user',
            name='inbox_mail',
            field=models.CharField(blank=True, choices=[('', 'never'), ('daily', 'once a day'), ('once', 'at once')], db_default='', default='', help_text='When the inboxes of their collections are mailed to them; empty: never.', max_length=5),
        ),
        migrations.AddField(
            model_name='user',
            name='inbox_site',
            field=models.CharField(blank=True, db_default='', default='', help_text='Address of this site, for links in that mail.', max_length=300),
        ),
        migrations.CreateModel(
            name='InboxReader',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seen_at', models.DateTimeField(help_text='What ended until then is no longer listed.', null=True)),
                ('mailed_at', models.DateTimeField(help_text='When the last mail was sent.', null=True)),
                ('mailed', models.JSONField(default=list, help_text='Keys of what still stood in the inbox at the last mail: it is not mailed again.')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.collection')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='inboxes', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'collection'), name='inbox_reader_once')],
            },
        ),
        migrations.CreateModel(
            name='PairNote',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('pair', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='corpus.pair')),
                ('written_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.AddField(
            model_name='bulkact',
            name='note',
            field=models.TextField(blank=True, db_default='', default='', help_text='Comment of the judgments that it wrote.'),
        ),
        migrations.AlterField(
            model_name='bulkact',
            name='kind',
            field=models.CharField(choices=[('send', 'Send to people'), ('reassign', 'Reassign'), ('priority', 'Set priority'), ('exclude', 'Exclude judgments'), ('reinstate', 'Reinstate judgments'), ('label', 'Set label'), ('export', 'Export pairs')], max_length=9),
        ),
        migrations.AlterField(
            model_name='bulkact',
            name='option',
            field=models.CharField(blank=True, help_text='The priority, the grade, the format of the file, or to whom: anyone, or a membership.', max_length=20),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(condition=models.Q(('flagged', True)), fields=['item'], name='assignment_flagged'),
        ),
        migrations.CreateModel(
            name='Thread',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', models.BigIntegerField(help_text="As on the annotator's pages (Assignment.item_of).")),
                ('flagged', models.BooleanField()),
                ('text', models.TextField()),
                ('written_at', models.DateTimeField()),
                ('waits', models.BooleanField(help_text='Nobody has answered it, and nothing has settled it.')),
                ('fate', models.CharField(max_length=11)),
                ('news_at', models.DateTimeField(help_text='Of the newest answer, or of what settled the flag.', null=True)),
                ('messages', models.JSONField()),
            ],
            options={
                'db_table': 'annotation_thread',
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='ThreadMessage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField(blank=True)),
                ('outcome', models.CharField(blank=True, choices=[('changed', 'label changed'), ('kept', 'label kept'), ('corrected', 'document corrected'), ('excluded', 'pair excluded'), ('noted', 'read, nothing to change')], max_length=9)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.AddField(
            model_name='membership',
            name='replies_seen_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='Answers to their comments and flags until then are read.'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(condition=models.Q(('flagged', True)), fields=['membership'], name='assignment_flags_of'),
        ),
        migrations.AddField(
            model_name='threadmessage',
            name='assignment',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='annotation.assignment'),
        ),
        migrations.AddField(
            model_name='threadmessage',
            name='written_by',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddConstraint(
            model_name='threadmessage',
            constraint=models.CheckConstraint(condition=models.Q(('outcome', ''), ('text', ''), _negated=True), name='thread_message_says_something'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='threadmessage',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='944bd4f32104970a207103368a3722a686935457', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_f0656', table='annotation_threadmessage', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='threadmessage',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='77875118e5b2000bda64b2dece50ba7a979e8125', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_c0985', table='annotation_threadmessage', when='BEFORE')),
        ),
        migrations.RunSQL(Path(__file__).with_name("0003_threads.sql").read_text(), "DROP VIEW annotation_thread"),
        migrations.CreateModel(
            name='HubPush',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('running', 'running'), ('ready', 'ready'), ('failed', 'failed'), ('cancelled', 'cancelled')], default='waiting', max_length=9)),
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
                ('kind', models.CharField(choices=[('dataset', 'export'), ('model', 'model')], max_length=7)),
                ('number', models.BigIntegerField(help_text='Of the export, or the primary key of the model.')),
                ('repository', models.CharField(max_length=200)),
                ('public', models.BooleanField(default=False)),
                ('address', models.CharField(blank=True, help_text='Of the repository, once it was pushed.', max_length=500)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='hub_pushes', to='corpus.collection')),
            ],
            options={'abstract': False},
        ),
        migrations.CreateModel(
            name='ComparisonSet',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.')),
                ('title', models.CharField(blank=True, max_length=200)),
                ('options', models.JSONField(default=dict, help_text='As it was drawn (annotation.work.comparing.options).')),
                ('seed', models.IntegerField(default=0)),
                ('people', models.PositiveSmallIntegerField(default=1, help_text='People who answer each comparison; 0: judges only.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('paused_at', models.DateTimeField(help_text='People get none of it until it is resumed.', null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comparison_sets', to='corpus.collection')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Comparison',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seq', models.PositiveIntegerField()),
                ('taken', models.PositiveSmallIntegerField(db_default=0, default=0, help_text='People who have or had it assigned.')),
                ('first', models.ForeignKey(help_text='The pair of document A.', on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.pair')),
                ('second', models.ForeignKey(help_text='The pair of document B.', on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.pair')),
                ('set', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='comparisons', to='annotation.comparisonset')),
            ],
        ),
        migrations.CreateModel(
            name='Preference',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('outcome', models.CharField(blank=True, choices=[('first', 'first preferred'), ('second', 'second preferred'), ('equal', 'equal'), ('both_bad', 'both bad')], help_text="Empty: withdraws the assessor's earlier answer.", max_length=8)),
                ('swapped', models.BooleanField(default=False, help_text='Document B was shown first.')),
                ('seconds', models.FloatField(help_text='Time on the comparison, as the page measured it.', null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('assessor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='preferences', to='corpus.assessor')),
                ('call', models.ForeignKey(db_index=False, help_text="The judge's call.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='judges.retrievalcall')),
                ('comparison', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='preferences', to='annotation.comparison')),
            ],
        ),
        migrations.CreateModel(
            name='ComparisonLease',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('swapped', models.BooleanField(default=False, help_text='Document B is shown on the left.')),
                ('is_open', models.BooleanField(default=True)),
                ('lease_until', models.DateTimeField()),
                ('answered_at', models.DateTimeField(help_text='Last; also of an answer that was undone.', null=True)),
                ('comparison', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='leases', to='annotation.comparison')),
                ('membership', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comparison_leases', to='annotation.membership')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('is_open', True)), fields=['lease_until'], name='comparison_lease_expiry')],
                'constraints': [models.UniqueConstraint(fields=('comparison', 'membership'), name='comparison_lease_once')],
            },
        ),
        migrations.AddConstraint(
            model_name='comparisonset',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='comparison_set_number'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='comparisonset',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='049203832229519812aba9b848c6a5cbca0e8a86', operation='INSERT', pgid='pgtrigger_number_b7beb', table='annotation_comparisonset', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='comparison',
            constraint=models.CheckConstraint(condition=models.Q(('first', models.F('second')), _negated=True), name='comparison_of_two'),
        ),
        migrations.AddConstraint(
            model_name='comparison',
            constraint=models.UniqueConstraint(fields=('set', 'seq'), name='comparison_seq'),
        ),
        migrations.AddConstraint(
            model_name='comparison',
            constraint=models.UniqueConstraint(fields=('set', 'first', 'second'), name='comparison_once'),
        ),
        migrations.AddIndex(
            model_name='preference',
            index=models.Index(fields=['comparison', 'assessor', '-id'], name='preference_newest'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='preference',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='f83f536320d5b072e0f5bf4e7b82b9786b3f6265', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_20ef7', table='annotation_preference', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='preference',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='246c5098c160da4621b626dfcc418436b1aec569', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_92888', table='annotation_preference', when='BEFORE')),
        ),
        migrations.CreateModel(
            name='JudgedComparison',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('forward', models.CharField(blank=True, choices=[('first', 'first preferred'), ('second', 'second preferred'), ('equal', 'equal'), ('both_bad', 'both bad')], help_text='With the first document as A.', max_length=8)),
                ('backward', models.CharField(blank=True, choices=[('first', 'first preferred'), ('second', 'second preferred'), ('equal', 'equal'), ('both_bad', 'both bad')], help_text='With the second document as A.', max_length=8)),
                ('problem', models.TextField(blank=True, help_text='Why an order has no answer; then the judge has no preference.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('assessor', models.ForeignKey(help_text="The judge's version.", on_delete=django.db.models.deletion.PROTECT, related_name='+', to='corpus.assessor')),
                ('comparison', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='judged', to='annotation.comparison')),
            ],
        ),
        migrations.CreateModel(
            name='ComparisonJudging',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('running', 'running'), ('ready', 'ready'), ('failed', 'failed'), ('cancelled', 'cancelled')], default='waiting', max_length=9)),
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
                ('campaign', models.BigIntegerField(help_text='Keeps its calls and what they cost; null: it asked nobody.', null=True)),
                ('options', models.JSONField(default=dict, help_text='set (its number), judges, versions, budget, max_calls.')),
                ('key', models.CharField(help_text='sha256 of the set and the judges, in hex.', max_length=64)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='corpus.collection')),
                ('set', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judgings', to='annotation.comparisonset')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('collection', 'key'), name='comparison_judging_once'), models.UniqueConstraint(fields=('collection', 'number'), name='comparison_judging_number')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='comparisonjudging',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='3dc256183a92aacae0822878755f4be8d1ed56a0', operation='INSERT', pgid='pgtrigger_number_0e517', table='annotation_comparisonjudging', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='judgedcomparison',
            constraint=models.UniqueConstraint(fields=('comparison', 'assessor'), name='judged_comparison_once'),
        ),
        migrations.AddConstraint(
            model_name='judgedcomparison',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('problem', ''), _negated=True), models.Q(models.Q(('forward', ''), _negated=True), models.Q(('backward', ''), _negated=True)), _connector='OR'), name='judged_comparison_answered'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='judgedcomparison',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='ac7f071beac6b5238768555bcc7bc4f586233bac', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_19c8e', table='annotation_judgedcomparison', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='judgedcomparison',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='712f67a12948bf0fcab86c327338ffda4755f0fd', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_ceffd', table='annotation_judgedcomparison', when='BEFORE')),
        ),
        migrations.AlterField(
            model_name='invitation',
            name='role',
            field=models.PositiveSmallIntegerField(choices=[(0, 'viewer'), (1, 'annotator'), (2, 'adjudicator'), (3, 'admin')], null=True),
        ),
        migrations.AlterField(
            model_name='membership',
            name='role',
            field=models.PositiveSmallIntegerField(choices=[(0, 'viewer'), (1, 'annotator'), (2, 'adjudicator'), (3, 'admin')]),
        ),
        migrations.CreateModel(
            name='ShareLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('page', models.CharField(choices=[('overview', 'Overview'), ('leaderboard', 'Leaderboard'), ('report', 'Report'), ('gate', 'Gate')], max_length=20)),
                ('report', models.PositiveIntegerField(help_text='Number of the report; null: the newest one.', null=True)),
                ('title', models.CharField(blank=True, help_text="Heading of the page; empty: the page's name.", max_length=200)),
                ('digest', models.CharField(help_text='SHA-256 of the token, in hexadecimal digits.', max_length=64, unique=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(null=True)),
                ('opened', models.PositiveIntegerField(db_default=0, default=0, help_text='How often the page was opened.')),
                ('last_opened_at', models.DateTimeField(null=True)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='share_links', to='corpus.collection')),
                ('made_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
    ]

    operations = [ChangeTables(operations)]
