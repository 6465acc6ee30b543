"""Retakes of the qualification test, quotas and deadlines of members, explanations of gold; readers of inboxes; notes on pairs."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0003_results'),
        ('corpus', '0003_functions'),
    ]

    operations = [
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
    ]
