"""Background jobs. The tables of version 0.1.0."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='BackgroundJob',
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
                ('kind', models.CharField(help_text='Name of the Celery task that does it.', max_length=60)),
                ('subject', models.BigIntegerField(help_text='Primary key of the row that it is about; the kind says of which table.')),
                ('arguments', models.JSONField(default=dict)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('state__in', ['waiting', 'running'])), fields=('kind', 'subject'), name='background_job_once')],
            },
        ),
    ]
