"""People who judge, what they judge, and what is computed of it. The tables of version 0.1.0."""

import annotation.models
import django.contrib.auth.models
import django.contrib.auth.validators
import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.math
import django.utils.timezone
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from corpus.table_changes import ChangeTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('corpus', '0001_initial'),
        ('judges', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('is_owner', models.BooleanField(default=False)),
                ('language', models.CharField(blank=True, db_default='', default='', help_text="Language of the pages; empty: the browser's.", max_length=10)),
                ('display', models.JSONField(db_default={}, default=dict, help_text='How pages look to this person (annotation.access.languages.LOOKS).')),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'verbose_name': 'user',
                'verbose_name_plural': 'users',
                'abstract': False,
            },
            managers=[
                ('objects', django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name='BlindSample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seed', models.IntegerField()),
                ('revisions', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Ids of the AspectRevisions drawn, in their order.', size=None)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='blind_samples', to='corpus.collection')),
            ],
        ),
        migrations.CreateModel(
            name='BulkAct',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.')),
                ('kind', models.CharField(choices=[('send', 'Send to people'), ('reassign', 'Reassign'), ('priority', 'Set priority'), ('exclude', 'Exclude judgments'), ('reinstate', 'Reinstate judgments'), ('export', 'Export pairs')], max_length=9)),
                ('state', models.CharField(choices=[('planned', 'not confirmed'), ('done', 'done'), ('undone', 'undone')], default='planned', max_length=7)),
                ('pairs', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Ids of the pairs as they were selected.', size=None)),
                ('option', models.CharField(blank=True, help_text='The priority, the format of the file, or to whom: anyone, or a membership.', max_length=20)),
                ('affected', models.PositiveIntegerField(default=0, help_text='Pairs that the act changed, or exported.')),
                ('changes', models.JSONField(default=dict, help_text='What undo needs (annotation.data.bulk.kinds).')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('done_at', models.DateTimeField(null=True)),
                ('undone_at', models.DateTimeField(null=True)),
                ('collection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='bulk_acts', to='corpus.collection')),
                ('made_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Computed',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('values', models.JSONField(default=dict)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='The moment whose data they describe.')),
                ('collection', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='computed', to='corpus.collection')),
            ],
        ),
        migrations.CreateModel(
            name='ConsentText',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('text', models.TextField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='consent_texts', to='corpus.collection')),
                ('written_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='FileImport',
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
                ('files', models.JSONField(default=list, help_text='What each file contains (annotation.data.imports.files.RecognisedFile).')),
                ('looked_at', models.BooleanField(db_default=True, default=False, help_text='The job has found out what the files contain.')),
                ('corrections', models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict, help_text="A person's corrections, which the job applies.")),
                ('options', models.JSONField(default=dict)),
                ('dry_run', models.BooleanField(default=True, help_text='The job checks; false: it imports.')),
                ('language', models.CharField(blank=True, db_default='', default='', help_text="Language of the requester's pages, for errors.", max_length=10)),
                ('report', models.JSONField(default=dict, help_text='What the check found or the import did.')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='file_imports', to='corpus.collection')),
                ('owner', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='GoldArguments',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('couples', models.PositiveSmallIntegerField(help_text='Pairs of one agent for and one against.')),
                ('rounds', models.PositiveSmallIntegerField()),
                ('turns', models.JSONField(help_text="As a debate's turns.")),
                ('written_by', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('pair', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='gold_arguments', to='corpus.pair')),
            ],
        ),
        migrations.CreateModel(
            name='GoldSet',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.')),
                ('seed', models.IntegerField(default=0)),
                ('spot', models.FloatField(default=0.2, help_text='Share of the pairs that a senior also reviews.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ended_at', models.DateTimeField(help_text='No more of its pairs are assigned.', null=True)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='gold_sets', to='corpus.collection')),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='GoldPair',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('place', models.PositiveIntegerField(help_text='Order in which experts get them; practice comes first.')),
                ('practice', models.BooleanField(default=False)),
                ('spot', models.BooleanField(default=False, help_text='A senior also reviews it.')),
                ('stratum', models.CharField(max_length=100)),
                ('turns', models.JSONField(default=list, help_text="One turn for and one against, as a debate's turns.")),
                ('written_by', models.CharField(blank=True, help_text='Who generated the two reasons.', max_length=200)),
                ('pair', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='gold_pairs', to='corpus.pair')),
                ('gold_set', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='pairs', to='annotation.goldset')),
            ],
        ),
        migrations.CreateModel(
            name='ArgumentsRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('written', models.PositiveIntegerField(default=0, help_text='Pairs that have arguments now.')),
                ('lost', models.PositiveIntegerField(default=0, help_text="Pairs for which a model's arguments were unusable.")),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ended_at', models.DateTimeField(null=True)),
                ('asked_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('collection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='argument_requests', to='corpus.collection')),
                ('gold_set', models.ForeignKey(help_text='Null: all gold that could become checks.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.goldset')),
            ],
        ),
        migrations.CreateModel(
            name='Guideline',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('text', models.TextField()),
                ('is_built_in', models.BooleanField(db_default=False, default=False, help_text='The built-in text, which readers see in their language.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='guidelines', to='corpus.collection')),
                ('written_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='InstructionVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('text', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='instruction_versions', to='corpus.collection')),
                ('written_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token', models.CharField(default=annotation.models.new_token, max_length=64, unique=True)),
                ('role', models.PositiveSmallIntegerField(choices=[(1, 'annotator'), (2, 'adjudicator'), (3, 'admin')], null=True)),
                ('note', models.CharField(blank=True, max_length=200)),
                ('limit', models.PositiveIntegerField(db_default=1, default=1, help_text='How many people may join with it.')),
                ('uses_left', models.PositiveIntegerField(db_default=1, default=1)),
                ('mailed_at', models.DateTimeField(help_text='When it was mailed to the address in the note.', null=True)),
                ('expires_at', models.DateTimeField()),
                ('revoked', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('accepted_by', models.ForeignKey(help_text='Who joined with a link for one person.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('collection', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='corpus.collection')),
                ('invited_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.PositiveSmallIntegerField(choices=[(1, 'annotator'), (2, 'adjudicator'), (3, 'admin')])),
                ('is_active', models.BooleanField(default=True)),
                ('watermark_priority', models.FloatField(help_text='Nothing before (priority, place) is new to this person.', null=True)),
                ('watermark_place', models.BigIntegerField(null=True)),
                ('arms_drawn', models.PositiveIntegerField(db_default=0, default=0, help_text='Items whose arm was drawn when they were assigned to this person.')),
                ('lent', models.PositiveIntegerField(db_default=0, default=0, help_text='Items that were assigned to this person; what comes next is drawn with it.')),
                ('closed_to', models.PositiveIntegerField(db_default=0, default=0, help_text='Assigned items in batches that were evaluated.')),
                ('returned', models.PositiveIntegerField(db_default=0, default=0, help_text='Returned batches whose notice they have not confirmed yet.')),
                ('paused_at', models.DateTimeField(help_text='Gets no items until resumed.', null=True)),
                ('pause_note', models.TextField(blank=True, db_default='', default='', help_text='The note that they see.')),
                ('consent', models.PositiveIntegerField(db_default=0, default=0, help_text='The version of the consent text that they agreed to.')),
                ('guideline_read', models.PositiveIntegerField(db_default=0, default=0, help_text='The version of the guidelines that they confirmed reading.')),
                ('trial', models.PositiveSmallIntegerField(db_default=0, default=0, help_text='The qualification test that they take: `seq` of its items.')),
                ('qualified_at', models.DateTimeField(null=True)),
                ('failed_at', models.DateTimeField(help_text='When they failed their last test; null: not failed.', null=True)),
                ('is_expert', models.BooleanField(db_default=False, default=False, help_text='May create gold labels.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('assessor', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, to='corpus.assessor')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='corpus.collection')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='JudgmentExclusion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('why', models.CharField(choices=[('person', 'manual'), ('batch', 'an attention check in the batch was missed'), ('pairs', 'selected pairs were reinstated')], default='person', max_length=6)),
                ('note', models.TextField(blank=True)),
                ('batch', models.PositiveIntegerField(help_text='Number of the batch, where it is about one.', null=True)),
                ('since', models.DateTimeField(help_text='Only judgments from then on; null: all.', null=True)),
                ('judgments', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, help_text='Ids of the rows that this act appended.', size=None)),
                ('texts', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), db_default=[], default=list, help_text='Ids of the texts that it appended.', size=None)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('made_by', models.ForeignKey(help_text='Null: the rule for batches.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('reverses', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='reversed_by', to='annotation.judgmentexclusion')),
                ('membership', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='set_aside', to='annotation.membership')),
            ],
            options={
                'db_table': 'annotation_settingaside',
            },
        ),
        migrations.CreateModel(
            name='GoldAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('who', models.CharField(choices=[('expert', 'expert'), ('senior', 'reviewer')], max_length=6)),
                ('grade', models.SmallIntegerField()),
                ('comment', models.TextField(blank=True)),
                ('milliseconds', models.PositiveIntegerField(null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('judgment', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='corpus.judgment')),
                ('gold_pair', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='annotation.goldpair')),
                ('membership', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='gold_answers', to='annotation.membership')),
            ],
        ),
        migrations.CreateModel(
            name='Consent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('membership', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='consents', to='annotation.membership')),
            ],
        ),
        migrations.CreateModel(
            name='Batch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(help_text='From 0, in the order in which items were assigned.')),
                ('size', models.PositiveSmallIntegerField()),
                ('checks', models.PositiveSmallIntegerField(help_text='Attention checks that were answered.')),
                ('missed', models.PositiveSmallIntegerField(help_text='Of them, those that were answered wrongly.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('membership', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='batches', to='annotation.membership')),
            ],
        ),
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('open', 'open'), ('done', 'done'), ('skipped', 'skipped'), ('returned', 'returned'), ('aside', 'excluded')], default='open', max_length=8)),
                ('token', models.CharField(default=annotation.models.new_token, max_length=43)),
                ('public_id', models.BigIntegerField(db_default=django.db.models.expressions.CombinedExpression(django.db.models.functions.comparison.Cast(django.db.models.functions.math.Floor(django.db.models.expressions.CombinedExpression(django.db.models.functions.math.Random(), '*', models.Value(4503599627370496.0))), models.BigIntegerField()), '+', models.Value(4503599627370496)), help_text="Random number of the item on this person's pages (Assignment.item_of).")),
                ('lent_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('served_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='When they got the pair in its present form: assigned, revealed or reopened.')),
                ('lease_until', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('number', models.PositiveIntegerField(help_text='How many were assigned to this person before; batches are numbered by it.', null=True)),
                ('skip_reason', models.CharField(blank=True, choices=[('unclear-query', 'The query is unclear'), ('unreadable', 'The text is unreadable or cut off'), ('language', 'I cannot read this language'), ('knowledge', 'I lack the knowledge'), ('other', 'Another reason')], max_length=15)),
                ('flagged', models.BooleanField(default=False)),
                ('flag_note', models.TextField(blank=True)),
                ('draft', models.JSONField(help_text='Input of the page that is not sent yet.', null=True)),
                ('place', models.PositiveSmallIntegerField(db_default=0, default=0, help_text='Position in a group of leases on one query, from 1; 0: alone.')),
                ('first', models.ForeignKey(db_index=False, help_text='Newest row of the judgment made before the debate was revealed.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='corpus.judgment')),
                ('item', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='corpus.item')),
                ('judgment', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='corpus.judgment')),
                ('membership', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='annotation.membership')),
            ],
        ),
        migrations.CreateModel(
            name='PassageDraft',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('waiting', 'waiting for a worker'), ('fetching', 'fetching'), ('ready', 'to refine'), ('failed', 'failed'), ('used', 'saved as passage'), ('dismissed', 'discarded')], default='waiting', max_length=9)),
                ('url', models.CharField(blank=True, help_text='As requested; empty for a file.', max_length=2000)),
                ('final_url', models.CharField(blank=True, help_text='After redirects.', max_length=2000)),
                ('file', models.CharField(blank=True, help_text="The uploaded file's name.", max_length=255)),
                ('title', models.TextField(blank=True)),
                ('text', models.TextField(blank=True, help_text='Without boilerplate; then as a person refined it.')),
                ('sha256', models.CharField(blank=True, help_text='Hash of the received bytes, in hex.', max_length=64)),
                ('bytes', models.PositiveIntegerField(default=0, help_text='Received so far.')),
                ('error', models.TextField(blank=True, help_text='Why there is no text, one line.')),
                ('asked_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('started_at', models.DateTimeField(null=True)),
                ('fetched_at', models.DateTimeField(null=True)),
                ('asked_by', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='passage_drafts', to='annotation.membership')),
                ('query', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='passage_drafts', to='corpus.query')),
            ],
        ),
        migrations.CreateModel(
            name='QuerySplit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(db_index=False, max_length=40)),
                ('query_ids', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), help_text='Ids of queries, sorted by their bytes.', size=None)),
                ('made_by', models.CharField(blank=True, max_length=150)),
                ('changed_at', models.DateTimeField(auto_now=True)),
                ('collection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='query_splits', to='corpus.collection')),
            ],
        ),
        migrations.CreateModel(
            name='ReservedFor',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('item', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='reserved_for', to='corpus.item')),
                ('membership', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='reserved_for', to='annotation.membership')),
            ],
        ),
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('query', models.TextField(blank=True, help_text='The query string of annotation.data.pair_filters.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to='corpus.collection')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='SecondReading',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('importances', models.JSONField(help_text="Aspect's id to importance.")),
                ('comment', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('reader', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='second_readings', to='annotation.membership')),
                ('revision', models.ForeignKey(help_text='The set that was read.', on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.aspectrevision')),
                ('sample', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='readings', to='annotation.blindsample')),
            ],
        ),
        migrations.CreateModel(
            name='SelfCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('passes', models.BooleanField()),
                ('findings', models.JSONField(help_text='judges.probes.known_orders.Findings, calls, cost, the first error.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='self_checks', to='corpus.collection')),
                ('judge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='self_checks', to='judges.judgeversion')),
            ],
        ),
        migrations.CreateModel(
            name='Snapshot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.')),
                ('format', models.CharField(max_length=30)),
                ('options', models.JSONField(default=dict)),
                ('manifest', models.JSONField(default=dict)),
                ('folder', models.CharField(max_length=500)),
                ('state', models.CharField(choices=[('making', 'in progress'), ('ready', 'ready'), ('failed', 'failed')], default='ready', max_length=6)),
                ('error', models.TextField(blank=True, help_text='Why it failed, one line.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='The moment whose data it contains.')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='snapshots', to='corpus.collection')),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='StoredAgreement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(help_text='Of the choice: annotation.agreement.cached_results.', max_length=64)),
                ('options', models.JSONField(default=dict)),
                ('values', models.JSONField(default=dict)),
                ('at', models.DateTimeField(help_text='The moment whose data they describe; null: not computed yet.', null=True)),
                ('failure', models.TextField(blank=True, db_default='', default='', help_text='Why measuring failed the last time, one line.')),
                ('collection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='stored_agreement', to='corpus.collection')),
            ],
        ),
        migrations.CreateModel(
            name='Study',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.')),
                ('seed', models.IntegerField(default=0)),
                ('overlap', models.PositiveSmallIntegerField(default=3, help_text='People of each group who judge a pair.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ended_at', models.DateTimeField(help_text='When its open items were withdrawn.', null=True)),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='studies', to='corpus.collection')),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'studies',
            },
        ),
        migrations.CreateModel(
            name='StudyItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('item', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='study_item', to='corpus.item')),
                ('study', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='annotation.study')),
            ],
        ),
        migrations.CreateModel(
            name='TeacherAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('api', models.CharField(help_text='Wire format: cohere, jina or voyage.', max_length=20)),
                ('url', models.CharField(max_length=500)),
                ('model', models.CharField(max_length=200)),
                ('pairs', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Ids of the pairs, in the order of the documents sent.', size=None)),
                ('request_sha256', models.CharField(max_length=64)),
                ('raw', models.TextField(blank=True, help_text='The raw response body.')),
                ('error', models.TextField(blank=True, help_text='Why scores are missing, in one line.')),
                ('milliseconds', models.PositiveIntegerField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='teacher_answers', to='corpus.collection')),
            ],
        ),
        migrations.CreateModel(
            name='TeacherScore',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('score', models.FloatField()),
                ('answer', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='scores', to='annotation.teacheranswer')),
                ('pair', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='teacher_scores', to='corpus.pair')),
            ],
        ),
        migrations.CreateModel(
            name='Upload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=255)),
                ('size', models.PositiveBigIntegerField()),
                ('modified', models.CharField(blank=True, help_text='When the file changed, as reported by the browser.', max_length=40)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('changed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True, help_text='When the last part was received.')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uploads', to='corpus.collection')),
                ('file_import', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='uploads', to='annotation.fileimport')),
                ('owner', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='WebSearch',
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
                ('options', models.JSONField(default=dict, help_text='judge, limit, seed, fetch, budget, max_calls.')),
                ('key', models.CharField(help_text='sha256 of the judge, the queries and `fetch`, in hex.', max_length=64)),
                ('campaign', models.BigIntegerField(help_text='Keeps its calls and what they cost; null: it asked nobody.', null=True)),
                ('imported', models.JSONField(default=dict, help_text='Documents and pairs that it added to the collection.')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='corpus.collection')),
            ],
            options={
                'verbose_name_plural': 'web searches',
            },
        ),
        migrations.CreateModel(
            name='SearchedQuery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('place', models.PositiveIntegerField(help_text='Order among the queries, from 0.')),
                ('answered_at', models.DateTimeField(help_text='When the service answered; null: pages not read yet.', null=True)),
                ('cached', models.BooleanField(default=False, help_text="The answer is an earlier search's.")),
                ('query', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.query')),
                ('search', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='queries', to='annotation.websearch')),
            ],
            options={
                'verbose_name_plural': 'searched queries',
            },
        ),
        migrations.CreateModel(
            name='WebSearchResult',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rank', models.PositiveSmallIntegerField(help_text='From 1.')),
                ('url', models.TextField(help_text="As the service returned it, or a fetched page's address after redirects.")),
                ('title', models.TextField(blank=True)),
                ('problem', models.TextField(blank=True, help_text='Why it became no document (corpus.url_fetch.problems).')),
                ('document', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.document')),
                ('searched', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='results', to='annotation.searchedquery')),
            ],
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('act', models.CharField(help_text='A key of annotation.access.audit_log.recording.ACTS.', max_length=40)),
                ('collection_name', models.CharField(blank=True, max_length=200)),
                ('details', models.JSONField(default=dict)),
                ('collection', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='corpus.collection')),
                ('concerns', models.ForeignKey(db_index=False, help_text='Whom the act concerns.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('person', models.ForeignKey(db_index=False, help_text='Who acted; null: a command or a stranger.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['collection', '-id'], name='audit_of_collection'), models.Index(fields=['person', '-id'], name='audit_of_person'), models.Index(fields=['concerns', '-id'], name='audit_concerning'), models.Index(fields=['act', '-id'], name='audit_of_act')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='auditentry',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='abe93a7704e51c85d67fb741fe9ca9bf7d88a8af', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_70323', table='annotation_auditentry', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='auditentry',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='4fc03dbe4d07d96eb34a462421425226ffef30c9', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_bcdbf', table='annotation_auditentry', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='blindsample',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='2c3b0b01a0df8e4c3ee12172b91df2ce8d818054', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_d6227', table='annotation_blindsample', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='blindsample',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='daa23a244f0fde45ed30a1df059d3946a4cb87a3', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_0f660', table='annotation_blindsample', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='bulkact',
            index=models.Index(fields=['collection', '-id'], name='bulk_act_newest'),
        ),
        migrations.AddConstraint(
            model_name='bulkact',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='bulk_act_number'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='bulkact',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='133d23f8ceac9a81e1c14956cbc77c513c3e86f2', operation='INSERT', pgid='pgtrigger_number_5d94e', table='annotation_bulkact', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='consenttext',
            constraint=models.UniqueConstraint(fields=('collection', 'version'), name='consent_version'),
        ),
        migrations.AddConstraint(
            model_name='fileimport',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='file_import_number'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='fileimport',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='5f3126b407b17cc93e8c17d1ef37dc7b2c9b2686', operation='INSERT', pgid='pgtrigger_number_8eb37', table='annotation_fileimport', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='goldarguments',
            constraint=models.UniqueConstraint(fields=('pair', 'couples'), name='gold_arguments_once'),
        ),
        migrations.AddConstraint(
            model_name='goldset',
            constraint=models.CheckConstraint(condition=models.Q(('spot__gte', 0), ('spot__lte', 1)), name='gold_spot'),
        ),
        migrations.AddConstraint(
            model_name='goldset',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='gold_set_number'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='goldset',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='36e7bdffea75406c0b4be467582e4394c9aa12e6', operation='INSERT', pgid='pgtrigger_number_1e070', table='annotation_goldset', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='goldpair',
            constraint=models.UniqueConstraint(fields=('gold_set', 'pair'), name='gold_pair_once'),
        ),
        migrations.AddConstraint(
            model_name='goldpair',
            constraint=models.UniqueConstraint(fields=('gold_set', 'place'), name='gold_pair_place'),
        ),
        migrations.AddIndex(
            model_name='argumentsrequest',
            index=models.Index(fields=['collection', '-id'], name='arguments_newest'),
        ),
        migrations.AddConstraint(
            model_name='guideline',
            constraint=models.UniqueConstraint(fields=('collection', 'version'), name='guideline_version'),
        ),
        migrations.AddConstraint(
            model_name='instructionversion',
            constraint=models.UniqueConstraint(fields=('collection', 'version'), name='instruction_version'),
        ),
        migrations.AddConstraint(
            model_name='invitation',
            constraint=models.CheckConstraint(condition=models.Q(('uses_left__lte', models.F('limit'))), name='invitation_uses'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.UniqueConstraint(fields=('user', 'collection'), name='membership_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='judgmentexclusion',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='8f53a380d2b5de04c2c2cdda78cd43a1f59132d1', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_fda73', table='annotation_settingaside', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='judgmentexclusion',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='34691f74c4328c7316c6506a2b7ad256126d1389', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_4a99f', table='annotation_settingaside', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='goldanswer',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='4fba1f58e30d2b2df64ed248892c3e9389df7fd4', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_a7f1c', table='annotation_goldanswer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='goldanswer',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='151c3d4606cb3a05e76f78e56633742bfb83f87b', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_8b5d7', table='annotation_goldanswer', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='consent',
            constraint=models.UniqueConstraint(fields=('membership', 'version'), name='consent_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='consent',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='5a8416570c3324bc8dba9df70597effc38268df0', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_00165', table='annotation_consent', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='consent',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='543ec3e7ebe71449db5acbf7ec02907ab0b1d15f', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_578f5', table='annotation_consent', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='batch',
            constraint=models.UniqueConstraint(fields=('membership', 'number'), name='batch_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='batch',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='f253a30f4367c6ca0e30ea04980732f498788c48', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_96b5c', table='annotation_batch', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='batch',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='f021c47473b42453cc49243c86cf2c38428881fc', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_8bd30', table='annotation_batch', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(condition=models.Q(('state', 'open')), fields=['lease_until'], name='assignment_expiry'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(fields=['membership', '-ended_at'], name='assignment_history'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(condition=models.Q(('state', 'skipped')), fields=['membership'], name='assignment_skipped'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(fields=('item', 'membership'), name='assignment_once'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(fields=('token',), name='assignment_token'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(fields=('membership', 'public_id'), name='assignment_public_id'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'open')), fields=('membership', 'place'), name='assignment_one_open'),
        ),
        migrations.AddConstraint(
            model_name='querysplit',
            constraint=models.UniqueConstraint(fields=('collection', 'name'), name='query_split_once'),
        ),
        migrations.AddConstraint(
            model_name='reservedfor',
            constraint=models.UniqueConstraint(fields=('item', 'membership'), name='reserved_once'),
        ),
        migrations.AddConstraint(
            model_name='savedview',
            constraint=models.UniqueConstraint(fields=('collection', 'user', 'name'), name='saved_view_once'),
        ),
        migrations.AddConstraint(
            model_name='secondreading',
            constraint=models.UniqueConstraint(fields=('sample', 'revision'), name='second_reading_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='secondreading',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='2e224cce4636662f5bd600b89921699db6f15b00', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_a80ed', table='annotation_secondreading', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='secondreading',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='668df29d5c3ec63a312997c4a27d534335700b23', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_b4dd5', table='annotation_secondreading', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='selfcheck',
            index=models.Index(fields=['collection', 'judge', '-id'], name='self_check_newest'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='selfcheck',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='93cb0b86005b71cb7473bbb1caa47134cd3aaf1d', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_b669f', table='annotation_selfcheck', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='selfcheck',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='39821a3e406157a0be97bbd47f1d009e11692ac3', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_668e6', table='annotation_selfcheck', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='snapshot',
            index=models.Index(fields=['collection', '-created_at'], name='snapshot_newest'),
        ),
        migrations.AddConstraint(
            model_name='snapshot',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='snapshot_number'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='snapshot',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='6366b20441c0f40bfbbb82032791a8f343149cdc', operation='INSERT', pgid='pgtrigger_number_0525c', table='annotation_snapshot', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='storedagreement',
            constraint=models.UniqueConstraint(fields=('collection', 'key'), name='stored_agreement_once'),
        ),
        migrations.AddConstraint(
            model_name='study',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='study_number'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='study',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='e7830545ed87b281d15a34b9727b3fc55e08bbd9', operation='INSERT', pgid='pgtrigger_number_b2e53', table='annotation_study', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='teacheranswer',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='aea8dc852d5e562977e8befe5a7a9a715622a342', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_00313', table='annotation_teacheranswer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='teacheranswer',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='3ef62760d77881683683d7eaafdc4c47d41a8069', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_60833', table='annotation_teacheranswer', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='teacherscore',
            constraint=models.UniqueConstraint(fields=('answer', 'pair'), name='teacher_score_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='teacherscore',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='4ebb0dafb0918c7f024ce3e87f3d1cf492a58102', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_05207', table='annotation_teacherscore', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='teacherscore',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='a2a8c9f9f7daee601e039a07178e1b568c738010', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_456de', table='annotation_teacherscore', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='websearch',
            constraint=models.UniqueConstraint(fields=('collection', 'key'), name='web_search_once'),
        ),
        migrations.AddConstraint(
            model_name='websearch',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='web_search_number'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='websearch',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='7692fc91534904cd22238f5153e0fefa4a1a0621', operation='INSERT', pgid='pgtrigger_number_11145', table='annotation_websearch', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='searchedquery',
            constraint=models.UniqueConstraint(fields=('search', 'place'), name='searched_query_once'),
        ),
        migrations.AddConstraint(
            model_name='websearchresult',
            constraint=models.UniqueConstraint(fields=('searched', 'rank'), name='web_search_result_once'),
        ),
    ]

    operations = [ChangeTables(operations)]
