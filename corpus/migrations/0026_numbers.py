"""The last number of each kind of row that a collection numbers from 1 (docs/adr/0116)."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('corpus', '0025_windows'),
    ]

    operations = [
        migrations.CreateModel(
            name='LastNumber',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(help_text='The table.', max_length=63)),
                ('number', models.PositiveIntegerField()),
                ('collection', models.ForeignKey(db_index=False, help_text='Null: of rows without one.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='corpus.collection')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('collection', 'kind'), name='last_number_once', nulls_distinct=False)],
            },
        ),
        migrations.AddField(
            model_name='exportrecord',
            name='number',
            field=models.PositiveIntegerField(db_default=0, help_text='Of the export in its home.'),
        ),
    ]
