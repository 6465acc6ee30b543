"""Terms of documents, for searching their texts; a worker indexes the collections that stand already."""

from typing import Any

import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
from django.db import migrations, models
from django.db.migrations.state import StateApps


def request_indexes(apps: StateApps, _schema: Any) -> None:
    """A job for each collection."""
    job = apps.get_model("jobs", "BackgroundJob")
    collections = apps.get_model("corpus", "Collection").objects.values_list("pk", flat=True)
    job.objects.bulk_create(job(kind="corpus.index_documents", subject=pk) for pk in collections)


class Migration(migrations.Migration):
    dependencies = [("corpus", "0019_markdown_and_daily_target"), ("jobs", "0001_background_jobs")]

    operations = [
        migrations.CreateModel(
            name='DocumentTerms',
            fields=[
                ('document', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='search_terms', serialize=False, to='corpus.document')),
                ('terms', django.contrib.postgres.search.SearchVectorField()),
                ('collection', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='search_terms', to='corpus.collection')),
            ],
            options={
                'verbose_name_plural': 'document terms',
                'indexes': [django.contrib.postgres.indexes.GinIndex(fields=['terms'], name='document_terms')],
            },
        ),
        migrations.RunPython(request_indexes, migrations.RunPython.noop),
    ]
