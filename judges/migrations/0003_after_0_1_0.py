"""What statements share; stored keys; roles of calls; numbers of campaigns that keep the costs of calls outside campaigns."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from corpus.table_changes import ChangeTables

UNDO = "DROP FUNCTION pair_states, audit_frame, collection_spending, last_votes, answer_counts, debate_turns, newest_debate, enqueue_work"


class Migration(migrations.Migration):

    # What instances between the releases have applied.
    replaces = [
        ('judges', '0003_functions'),
        ('judges', '0004_stored_keys'),
        ('judges', '0005_cost_centre_numbers'),
    ]

    dependencies = [
        ('corpus', '0003_after_0_1_0'),
        ('judges', '0002_database'),
    ]

    operations = [
        migrations.RunSQL(Path(__file__).with_name("0003_functions.sql").read_text(), UNDO),
        migrations.CreateModel(
            name='StoredKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text="As judges name it in place of a variable, or of a collection's hub.", max_length=200, unique=True)),
                ('address', models.CharField(help_text='Where it may be sent.', max_length=600)),
                ('ciphertext', models.TextField(help_text='Of the key with its name and its address.')),
                ('ending', models.CharField(blank=True, help_text='The last characters; empty of a short key.', max_length=4)),
                ('stored_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('made_by', models.CharField(blank=True, max_length=150)),
                ('collection', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.collection')),
            ],
        ),
        migrations.AlterField(
            model_name='attempt',
            name='role',
            field=models.CharField(choices=[('for', 'for'), ('against', 'against'), ('vote', 'vote'), ('generation', 'generation'), ('filter', 'filter'), ('adjudicate', 'adjudicate'), ('check', 'check'), ('write', 'write'), ('entity', 'entity'), ('measure', 'measure'), ('rewrite', 'rewrite'), ('reason', 'reason'), ('rank', 'rank'), ('embed', 'embed'), ('web', 'web search'), ('answer', 'answer'), ('correct', 'check of an answer'), ('search', 'search'), ('assess', 'assessment of an answer'), ('reference', 'reference answer'), ('persona', 'persona'), ('classify', 'type of query'), ('outline', 'answer to a synthetic query'), ('decompose', 'aspects'), ('blueprint', 'blueprint'), ('negatives', 'blueprints of negatives'), ('compose', 'written document'), ('keywords', 'keywords'), ('ask', 'written query'), ('prefer', 'preference')], max_length=10),
        ),
        migrations.AlterField(
            model_name='ledger',
            name='role',
            field=models.CharField(choices=[('for', 'for'), ('against', 'against'), ('vote', 'vote'), ('generation', 'generation'), ('filter', 'filter'), ('adjudicate', 'adjudicate'), ('check', 'check'), ('write', 'write'), ('entity', 'entity'), ('measure', 'measure'), ('rewrite', 'rewrite'), ('reason', 'reason'), ('rank', 'rank'), ('embed', 'embed'), ('web', 'web search'), ('answer', 'answer'), ('correct', 'check of an answer'), ('search', 'search'), ('assess', 'assessment of an answer'), ('reference', 'reference answer'), ('persona', 'persona'), ('classify', 'type of query'), ('outline', 'answer to a synthetic query'), ('decompose', 'aspects'), ('blueprint', 'blueprint'), ('negatives', 'blueprints of negatives'), ('compose', 'written document'), ('keywords', 'keywords'), ('ask', 'written query'), ('prefer', 'preference')], max_length=10),
        ),
        migrations.AlterField(
            model_name='retrievalcall',
            name='role',
            field=models.CharField(choices=[('for', 'for'), ('against', 'against'), ('vote', 'vote'), ('generation', 'generation'), ('filter', 'filter'), ('adjudicate', 'adjudicate'), ('check', 'check'), ('write', 'write'), ('entity', 'entity'), ('measure', 'measure'), ('rewrite', 'rewrite'), ('reason', 'reason'), ('rank', 'rank'), ('embed', 'embed'), ('web', 'web search'), ('answer', 'answer'), ('correct', 'check of an answer'), ('search', 'search'), ('assess', 'assessment of an answer'), ('reference', 'reference answer'), ('persona', 'persona'), ('classify', 'type of query'), ('outline', 'answer to a synthetic query'), ('decompose', 'aspects'), ('blueprint', 'blueprint'), ('negatives', 'blueprints of negatives'), ('compose', 'written document'), ('keywords', 'keywords'), ('ask', 'written query'), ('prefer', 'preference')], max_length=10),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='campaign',
            trigger=pgtrigger.compiler.Trigger(name='cost_centre_number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0 AND NEW."policy" = \'retrieval\')', func="\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number)\nVALUES (NEW.collection_id, 'judges_campaign of costs', 1000001)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n", hash='be7271adcf38f5633c7bc229d47f67c643a15c0e', operation='INSERT', pgid='pgtrigger_cost_centre_number_f8b30', table='judges_campaign', when='BEFORE')),
        ),
    ]

    operations = [ChangeTables(operations)]
