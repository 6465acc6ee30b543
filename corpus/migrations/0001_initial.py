"""Collections, texts, pairs, judgments and labels. The tables of version 0.1.0."""

import corpus.models.texts
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from corpus.table_changes import ChangeTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='CurrentJudgment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.CharField(choices=[('first', 'first'), ('final', 'final'), ('adjudication', 'adjudication'), ('import', 'import')], max_length=12)),
                ('grade', models.SmallIntegerField()),
                ('comment', models.TextField()),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'db_table': 'current_judgment',
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='Aspect',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('external_id', models.CharField(max_length=255)),
                ('text', models.TextField()),
                ('rationale', models.TextField(blank=True)),
                ('importance', models.PositiveSmallIntegerField(default=3)),
                ('place', models.PositiveSmallIntegerField(db_default=0, default=0, help_text='Order within the query.')),
                ('is_current', models.BooleanField(db_default=True, default=True, help_text="In the query's set as it stands now.")),
            ],
        ),
        migrations.CreateModel(
            name='Document',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('external_id', models.CharField(max_length=255)),
                ('version', models.PositiveIntegerField(default=1)),
                ('is_current', models.BooleanField(default=True)),
                ('text', models.TextField(blank=True)),
                ('metadata', models.JSONField(default=dict)),
                ('content_hash', models.CharField(help_text='sha256 of everything a reader sees, in hex.', max_length=64)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('title', models.TextField(blank=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Collection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True, validators=[django.core.validators.RegexValidator('\\A[a-z0-9][a-z0-9_-]{0,62}\\Z', 'Use lowercase letters, digits, - and _ (63 at most).')])),
                ('title', models.CharField(blank=True, max_length=200)),
                ('rubric', models.CharField(choices=[('auto', 'By query: sufficiency if answers are listed, otherwise helpfulness'), ('sufficiency', 'Sufficiency: the document contains everything an answer needs'), ('helpfulness', 'Helpfulness: the document helps to answer, or supports an aspect of an answer')], db_default='auto', default='auto', help_text='Which definition of relevance holds (corpus.rubric).', max_length=11)),
                ('instruction', models.TextField(blank=True, help_text="A definition of relevance in the collection's own words, in place of the rubric's.")),
                ('grades', models.PositiveSmallIntegerField(default=3, help_text='The highest grade; 0 is the lowest.')),
                ('relevant_from', models.PositiveSmallIntegerField(default=1, help_text='Grades from here on are relevant.')),
                ('overlap', models.PositiveSmallIntegerField(default=1, help_text='Annotators for each item.')),
                ('order', models.CharField(choices=[('uncertain', 'Most uncertain first'), ('query', 'Query by query'), ('random', 'Random (seeded)')], default='uncertain', max_length=10)),
                ('lease_minutes', models.PositiveSmallIntegerField(default=30)),
                ('min_judgment_ms', models.PositiveSmallIntegerField(db_default=300, default=300, help_text='A grade that comes sooner after its pair was served is refused; 0: none is.')),
                ('daily_target', models.PositiveSmallIntegerField(db_default=0, default=0, help_text='Pairs that each annotator is asked to judge in a day; 0: no target.')),
                ('markdown', models.BooleanField(db_default=False, default=False, help_text='Documents are Markdown, and the judging page formats them.')),
                ('long_documents', models.CharField(choices=[('cut', 'Judges read the first 24,000 characters'), ('people', 'People judge them'), ('windows', 'Judges read them in windows, each apart; one relevant window is enough'), ('context', 'Judges read them whole, as far as their own context reaches')], db_default='cut', default='cut', help_text='What is done with documents of more than 24,000 characters (corpus.long_documents).', max_length=7)),
                ('seed', models.IntegerField(default=0)),
                ('arms', models.JSONField(default=corpus.models.texts.shown_only, help_text='Weights of the arms in which items are lent.')),
                ('rounds', models.CharField(choices=[('all', 'All rounds'), ('final', 'The final round')], db_default='all', default='all', help_text='What people read of a debate.', max_length=5)),
                ('checks', models.FloatField(db_default=0.1, default=0.1, help_text="Share of attention checks in each annotator's work; 0: none.")),
                ('has_checks', models.BooleanField(db_default=False, default=False, help_text='There are attention checks to be lent: else nobody looks for one.')),
                ('repeats', models.FloatField(db_default=0.0, default=0.0, help_text='Share of pairs that an annotator is asked once more; 0: none.')),
                ('batch', models.PositiveSmallIntegerField(db_default=20, default=20, help_text='Pairs of an annotator that are accepted or returned together.')),
                ('qualification', models.BooleanField(db_default=False, default=False, help_text='Annotators pass a test before they get items.')),
                ('pass_mark', models.PositiveSmallIntegerField(db_default=90, default=90, help_text='Percent of the qualification test that must be right.')),
                ('consent_version', models.PositiveIntegerField(db_default=0, default=0, help_text='Of the text that annotators agree to before they begin; 0: none.')),
                ('guideline_version', models.PositiveIntegerField(db_default=0, default=0, help_text='The newest guidelines.')),
                ('audit', models.FloatField(db_default=0.02, default=0.02, help_text='Share of automatic labels that people check; 0: none.')),
                ('hourly_rate', models.FloatField(blank=True, help_text='USD for an hour of an annotator; null: unknown.', null=True)),
                ('budget', models.FloatField(blank=True, help_text='USD that judges may cost in all campaigns together; null: no cap.', null=True)),
                ('daily_budget', models.FloatField(blank=True, help_text='USD that judges may cost in one UTC day; null: no cap.', null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('audit__gte', 0), ('audit__lte', 1)), name='collection_audit'), models.CheckConstraint(condition=models.Q(('checks__gte', 0), ('checks__lte', 0.5), ('repeats__gte', 0), ('repeats__lte', 0.5)), name='collection_checks'), models.CheckConstraint(condition=models.Q(('batch__gte', 5), ('batch__lte', 1000)), name='collection_batch'), models.CheckConstraint(condition=models.Q(('pass_mark__lte', 100)), name='collection_pass_mark'), models.CheckConstraint(condition=models.Q(('hourly_rate', None), ('hourly_rate__gte', 0), _connector='OR'), name='collection_hourly_rate'), models.CheckConstraint(condition=models.Q(('budget', None), ('budget__gte', 0), _connector='OR'), name='collection_budget'), models.CheckConstraint(condition=models.Q(('daily_budget', None), ('daily_budget__gte', 0), _connector='OR'), name='collection_daily_budget'), models.CheckConstraint(condition=models.Q(('grades__gte', 1), ('grades__lte', 100)), name='collection_grades'), models.CheckConstraint(condition=models.Q(('relevant_from__gte', 1), ('relevant_from__lte', models.F('grades'))), name='collection_relevant_from'), models.CheckConstraint(condition=models.Q(('overlap__gte', 1), ('overlap__lte', 25)), name='collection_overlap'), models.CheckConstraint(condition=models.Q(('lease_minutes__gte', 1)), name='collection_lease')],
            },
        ),
        migrations.CreateModel(
            name='Assessor',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('person', 'person'), ('judge', 'judge'), ('policy', 'policy'), ('human-import', 'imported people'), ('judge-import', 'imported judge'), ('reference', 'reference')], max_length=12)),
                ('name', models.CharField(max_length=150)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='corpus.collection')),
            ],
        ),
        migrations.CreateModel(
            name='DocumentTerms',
            fields=[
                ('document', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='search_terms', serialize=False, to='corpus.document')),
                ('terms', django.contrib.postgres.search.SearchVectorField()),
            ],
            options={
                'verbose_name_plural': 'document terms',
            },
        ),
        migrations.AddField(
            model_name='document',
            name='collection',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='corpus.collection'),
        ),
        migrations.CreateModel(
            name='ExportRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('export', models.BigIntegerField(db_index=True, help_text='Id of the snapshot.')),
                ('number', models.PositiveIntegerField(db_default=0, help_text='Of the export in its home.')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='The moment whose data it holds.')),
                ('home', models.CharField(blank=True, db_default='', help_text='The collection whose export it is.', max_length=63)),
                ('format', models.CharField(blank=True, db_default='', max_length=30)),
                ('sha256', models.CharField(blank=True, db_default='', help_text='Of its manifest, in hex: trainings know it by this.', max_length=64)),
                ('by_policies', models.BooleanField(db_default=False, default=False, help_text='It holds what policies said, whatever people said afterwards.')),
                ('collection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='exported', to='corpus.collection')),
            ],
        ),
        migrations.CreateModel(
            name='Item',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('campaign', models.BigIntegerField(help_text="The campaign that escalated it: judges_campaign's id.", null=True)),
                ('reason', models.CharField(choices=[('disagreement', 'the two sides did not agree'), ('conflict', 'the debate and the vote disagree'), ('split', 'too few equal votes'), ('unparsed', 'an answer could not be read'), ('refused', 'a judge refused to answer'), ('error', 'a judge could not be reached'), ('stopped', 'labels from this route were wrong too often'), ('policy', 'people judge every pair'), ('uncertain', 'the judge is least certain about it'), ('long', 'its document is longer than judges read'), ('hole', 'a system returned it, but it is not in the qrels'), ('requested', 'sent to people by an admin'), ('audit', 'drawn for a label audit'), ('evidence', 'contribution and evidence to edit'), ('study', 'part of a paired study'), ('check', 'an attention check'), ('repeat', 'repeated pair'), ('qualification', 'part of the qualification test')], max_length=13)),
                ('seq', models.PositiveSmallIntegerField(default=0)),
                ('arm', models.CharField(blank=True, choices=[('shown', 'the debate is shown'), ('hidden', 'the debate is hidden'), ('reveal', 'a first vote, then the debate, then the final vote')], db_default='', default='', help_text='What of the debate is shown; drawn when the item is first lent, unless its maker chose it.', max_length=6)),
                ('shown_as', models.CharField(blank=True, choices=[('disagreement', 'the two sides did not agree'), ('conflict', 'the debate and the vote disagree'), ('split', 'too few equal votes'), ('unparsed', 'an answer could not be read'), ('refused', 'a judge refused to answer'), ('error', 'a judge could not be reached'), ('stopped', 'labels from this route were wrong too often'), ('policy', 'people judge every pair'), ('uncertain', 'the judge is least certain about it'), ('long', 'its document is longer than judges read'), ('hole', 'a system returned it, but it is not in the qrels'), ('requested', 'sent to people by an admin'), ('audit', 'drawn for a label audit'), ('evidence', 'contribution and evidence to edit'), ('study', 'part of a paired study'), ('check', 'an attention check'), ('repeat', 'repeated pair'), ('qualification', 'part of the qualification test')], db_default='', default='', help_text='The reason whose words an annotator reads; empty: its own.', max_length=13)),
                ('turns', models.JSONField(help_text="The debate that is shown with it; null: the pair's newest.", null=True)),
                ('reserved', models.BooleanField(db_default=False, default=False, help_text='Lent only to those whom annotation_reservedfor names.')),
                ('state', models.CharField(choices=[('open', 'open'), ('conflict', 'waits for an adjudicator'), ('settled', 'settled'), ('withdrawn', 'withdrawn'), ('standing', 'assigned to everyone once')], default='open', max_length=9)),
                ('priority', models.FloatField(default=0.0, help_text='Smaller is lent first.')),
                ('place', models.BigIntegerField(help_text='Order among equals, from the sequence corpus_item_place; new when returned.')),
                ('overlap', models.PositiveSmallIntegerField(default=1, help_text='People who shall judge it.')),
                ('taken', models.PositiveSmallIntegerField(default=0, help_text='Open leases and judgments on it.')),
                ('done', models.PositiveSmallIntegerField(default=0, help_text='Judgments on it.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('settled_at', models.DateTimeField(null=True)),
                ('collection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='corpus.collection')),
            ],
        ),
        migrations.CreateModel(
            name='LastNumber',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(help_text='The table.', max_length=63)),
                ('number', models.PositiveIntegerField()),
                ('collection', models.ForeignKey(db_index=False, help_text='Null: of rows without one.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.collection')),
            ],
        ),
        migrations.CreateModel(
            name='Pair',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_candidate', models.BooleanField(db_default=True, default=True, help_text='To be judged; false: only an imported grade names it.')),
                ('teacher_score', models.FloatField(null=True)),
                ('uncertainty', models.FloatField(default=0.0, help_text='Larger is asked first when the queue orders by it.')),
                ('collection', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, to='corpus.collection')),
                ('document', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='corpus.document')),
            ],
        ),
        migrations.CreateModel(
            name='Label',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('grade', models.SmallIntegerField()),
                ('origin', models.CharField(help_text="The policy's name, or people, adjudicator.", max_length=20)),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('aspect', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, to='corpus.aspect')),
                ('pair', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='corpus.pair')),
            ],
        ),
        migrations.CreateModel(
            name='Judgment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.CharField(choices=[('first', 'first'), ('final', 'final'), ('adjudication', 'adjudication'), ('import', 'import')], max_length=12)),
                ('grade', models.SmallIntegerField(help_text='Null withdraws the judgment that it supersedes.', null=True)),
                ('arm', models.CharField(blank=True, help_text='What of the debate was shown: shown, hidden, reveal.', max_length=20)),
                ('guideline', models.PositiveIntegerField(default=0, help_text='Version of the guidelines that held.')),
                ('milliseconds', models.PositiveIntegerField(help_text='Time on the page.', null=True)),
                ('idle_milliseconds', models.PositiveIntegerField(help_text='Of it, with the page hidden or untouched for a minute and more.', null=True)),
                ('spans', models.JSONField(help_text="[start, end) of the document's characters, marked as evidence.", null=True)),
                ('comment', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('aspect', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, to='corpus.aspect')),
                ('assessor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='corpus.assessor')),
                ('item', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='judgments', to='corpus.item')),
                ('supersedes', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='superseded_by', to='corpus.judgment')),
                ('pair', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judgments', to='corpus.pair')),
            ],
        ),
        migrations.AddField(
            model_name='item',
            name='pair',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='items', to='corpus.pair'),
        ),
        migrations.CreateModel(
            name='Query',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('external_id', models.CharField(max_length=255)),
                ('version', models.PositiveIntegerField(default=1)),
                ('is_current', models.BooleanField(default=True)),
                ('text', models.TextField(blank=True)),
                ('metadata', models.JSONField(default=dict)),
                ('content_hash', models.CharField(help_text='sha256 of everything a reader sees, in hex.', max_length=64)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('answers', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('instruction', models.TextField(blank=True, help_text='A definition of relevance for this query alone.')),
                ('collection', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='corpus.collection')),
            ],
            options={
                'verbose_name_plural': 'queries',
                'abstract': False,
            },
        ),
        migrations.AddField(
            model_name='pair',
            name='query',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='corpus.query'),
        ),
        migrations.CreateModel(
            name='ExportedLabels',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('split', models.CharField(blank=True, help_text='train or dev; empty: no training set.', max_length=5)),
                ('pairs', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Primary keys.', size=None)),
                ('grades', django.contrib.postgres.fields.ArrayField(base_field=models.SmallIntegerField(null=True), help_text='Null: judgments on the pair, not its label.', size=None)),
                ('origins', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=150), help_text="The labels' origins of that moment.", size=None)),
                ('record', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='corpus.exportrecord')),
                ('query', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.query')),
            ],
            options={
                'verbose_name_plural': 'exported labels',
            },
        ),
        migrations.CreateModel(
            name='AspectRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(help_text='From 1 for each query.')),
                ('act', models.CharField(choices=[('add', 'added'), ('clarify', 'clarified'), ('weigh', 'weighed'), ('split', 'split'), ('merge', 'merged'), ('remove', 'removed'), ('keep', 'kept a document'), ('discard', 'discarded a document'), ('reopen', 'returned a document to review'), ('passage', 'added passages'), ('join', 'joined passages'), ('cut', 'cut a passage'), ('import', 'imported'), ('review', 'reviewed'), ('undo', 'undid')], max_length=8)),
                ('note', models.TextField(blank=True, help_text='What it was done to, or why.')),
                ('aspects', models.JSONField(help_text='The set after the act, in order: id, text, rationale, importance.')),
                ('judgments', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, help_text='Ids of the judgments that the act gave.', size=None)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('undoes', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='undone_by', to='corpus.aspectrevision')),
                ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='corpus.assessor')),
                ('query', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='aspect_revisions', to='corpus.query')),
            ],
        ),
        migrations.CreateModel(
            name='AspectReview',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('judgments', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Ids of the judgments of documents under aspects, as they were found.', size=None)),
                ('blind', models.BooleanField(help_text='The reviewer had neither worked on the query nor weighed it in a review.')),
                ('state', models.CharField(choices=[('open', 'in review'), ('submitted', 'reviewed'), ('released', 'released'), ('expired', 'expired')], default='open', max_length=9)),
                ('leased_until', models.DateTimeField(help_text='From then on another person may take the query.')),
                ('accepted', models.BooleanField(help_text='Once submitted: nothing was changed.', null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('submitted_at', models.DateTimeField(null=True)),
                ('final', models.ForeignKey(help_text='The newest revision when it was submitted: the review holds until there is another.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.aspectrevision')),
                ('revision', models.ForeignKey(help_text='The set as it was found.', on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.aspectrevision')),
                ('reviewer', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='corpus.assessor')),
                ('query', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='aspect_reviews', to='corpus.query')),
            ],
        ),
        migrations.AddField(
            model_name='aspect',
            name='query',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='aspects', to='corpus.query'),
        ),
        migrations.CreateModel(
            name='ReviewStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('weights', 'own weights'), ('aspects', 'aspects'), ('documents', 'documents'), ('undo', 'undone')], max_length=9)),
                ('answers', models.JSONField(default=dict, help_text='Own importances; the four criteria; a decision per document.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('review', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='corpus.aspectreview')),
                ('revision', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.aspectrevision')),
                ('undoes', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='undone_by', to='corpus.reviewstep')),
            ],
        ),
        migrations.CreateModel(
            name='Target',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField(help_text='From 1 for each pair.')),
                ('kind', models.CharField(choices=[('judge', 'judge'), ('person', 'person')], max_length=6)),
                ('writer', models.CharField(help_text="The judge's or the person's name.", max_length=150)),
                ('contribution', models.TextField(blank=True)),
                ('evidence', models.TextField(blank=True)),
                ('measures', models.JSONField(default=dict, help_text='By rule and judged, and the problems that were found.')),
                ('good', models.BooleanField(help_text='It may be learned from.')),
                ('rating', models.PositiveSmallIntegerField(help_text='1 to 5: what its writer thought of the texts that they were shown.', null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('item', models.ForeignKey(help_text='On whose desk it was.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='corpus.item')),
                ('pair', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='corpus.pair')),
                ('withdraws', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='withdrawn_by', to='corpus.target')),
            ],
        ),
        migrations.AddConstraint(
            model_name='assessor',
            constraint=models.UniqueConstraint(fields=('collection', 'kind', 'name'), name='assessor_name'),
        ),
        migrations.AddField(
            model_name='documentterms',
            name='collection',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='search_terms', to='corpus.collection'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(condition=models.Q(('is_current', True)), fields=('collection', 'external_id'), name='document_current'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(condition=models.Q(('is_current', False)), fields=('collection', 'external_id', 'content_hash'), name='document_content'),
        ),
        migrations.AddIndex(
            model_name='exportrecord',
            index=models.Index(fields=['collection', '-at'], name='export_record_newest'),
        ),
        migrations.AddIndex(
            model_name='exportrecord',
            index=models.Index(fields=['sha256'], name='export_record_sha256'),
        ),
        migrations.AddConstraint(
            model_name='exportrecord',
            constraint=models.UniqueConstraint(fields=('collection', 'export'), name='export_record_once'),
        ),
        migrations.AddConstraint(
            model_name='lastnumber',
            constraint=models.UniqueConstraint(fields=('collection', 'kind'), name='last_number_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='label',
            constraint=models.UniqueConstraint(fields=('pair', 'aspect'), name='label_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='judgment',
            constraint=models.UniqueConstraint(condition=models.Q(('item__isnull', False), ('supersedes', None)), fields=('item', 'assessor', 'step'), name='judgment_once'),
        ),
        migrations.AddConstraint(
            model_name='judgment',
            constraint=models.UniqueConstraint(condition=models.Q(('item', None), ('supersedes', None)), fields=('pair', 'aspect', 'assessor', 'step'), name='judgment_import_once', nulls_distinct=False),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='judgment',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='57093a34a803c629cb77eea8dbb0cecf4643b765', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_664ec', table='corpus_judgment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='judgment',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='2e0987f156f0cade4d6cbf917d388d3405352aed', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_f5a2c', table='corpus_judgment', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='item',
            index=models.Index(condition=models.Q(('state', 'open'), ('taken__lt', models.F('overlap'))), fields=['collection', 'priority', 'place'], name='item_queue'),
        ),
        migrations.AddIndex(
            model_name='item',
            index=models.Index(fields=['collection', 'state', 'reason'], name='item_state'),
        ),
        migrations.AddIndex(
            model_name='item',
            index=models.Index(fields=['campaign', 'state'], name='item_campaign'),
        ),
        migrations.AddConstraint(
            model_name='item',
            constraint=models.UniqueConstraint(fields=('pair', 'reason', 'seq'), name='item_once'),
        ),
        migrations.AddConstraint(
            model_name='item',
            constraint=models.CheckConstraint(condition=models.Q(('taken__lte', models.F('overlap'))), name='item_taken'),
        ),
        migrations.AddConstraint(
            model_name='item',
            constraint=models.CheckConstraint(condition=models.Q(('done__lte', models.F('taken'))), name='item_done'),
        ),
        migrations.AddConstraint(
            model_name='query',
            constraint=models.UniqueConstraint(condition=models.Q(('is_current', True)), fields=('collection', 'external_id'), name='query_current'),
        ),
        migrations.AddConstraint(
            model_name='query',
            constraint=models.UniqueConstraint(condition=models.Q(('is_current', False)), fields=('collection', 'external_id', 'content_hash'), name='query_content'),
        ),
        migrations.AddConstraint(
            model_name='pair',
            constraint=models.UniqueConstraint(fields=('query', 'document'), name='pair_once'),
        ),
        migrations.AddConstraint(
            model_name='exportedlabels',
            constraint=models.UniqueConstraint(fields=('record', 'query'), name='exported_labels_once'),
        ),
        migrations.AddConstraint(
            model_name='aspectrevision',
            constraint=models.UniqueConstraint(fields=('query', 'number'), name='aspect_revision_number'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='aspectrevision',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='713e0d0a38a70a8b407835d262e780215d8c6a98', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_5c283', table='corpus_aspectrevision', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='aspectrevision',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='58db99fb125118bc1764102ae5abc9dd47514a92', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_901fa', table='corpus_aspectrevision', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='aspectreview',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'open')), fields=('query',), name='aspect_review_one_open'),
        ),
        migrations.AddConstraint(
            model_name='aspectreview',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('accepted__isnull', False), ('final__isnull', False), ('state', 'submitted'), ('submitted_at__isnull', False)), models.Q(models.Q(('state', 'submitted'), _negated=True), ('accepted', None), ('final', None), ('submitted_at', None)), _connector='OR'), name='aspect_review_submitted'),
        ),
        migrations.AddConstraint(
            model_name='aspect',
            constraint=models.UniqueConstraint(fields=('query', 'external_id'), name='aspect_id'),
        ),
        migrations.AddConstraint(
            model_name='aspect',
            constraint=models.CheckConstraint(condition=models.Q(('importance__gte', 1), ('importance__lte', 5)), name='aspect_importance'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='reviewstep',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='5a5f1d25157e615a4e4af716e4b533c1d30c326d', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_a6f07', table='corpus_reviewstep', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='reviewstep',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='c00cb8cf3e8531f6b22707401b4a28df3f6a12c4', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_f1a10', table='corpus_reviewstep', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='target',
            constraint=models.UniqueConstraint(fields=('pair', 'version'), name='target_version'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='target',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='409d71431dc5859b9746985b6d515b959a8994dd', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_5ed5e', table='corpus_target', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='target',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='fdd7ec2df6cf636ff93e88351ed63e6b6f0ef276', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_b48bf', table='corpus_target', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='documentterms',
            index=django.contrib.postgres.indexes.GinIndex(fields=['terms'], name='document_terms'),
        ),
    ]

    operations = [ChangeTables(operations)]
