"""Files that several machines share. The tables of version 0.1.0."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='StoredContent',
            fields=[
                ('sha256', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('size', models.PositiveBigIntegerField()),
                ('used_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='When somebody last published a file with it.')),
            ],
        ),
        migrations.CreateModel(
            name='StoredFile',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='Path below VAR, with slashes.', max_length=1000, unique=True)),
                ('node', models.CharField(help_text='The machine that published it last (store.nodes).', max_length=32)),
                ('changed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('content', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='files', to='store.storedcontent')),
            ],
        ),
    ]
