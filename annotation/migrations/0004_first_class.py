"""Retakes of the qualification test, quotas and deadlines of members, explanations of gold."""

import django.db.models.deletion
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
    ]
