import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0033_web_search'),
        ('corpus', '0023_aspect_reviews'),
    ]

    operations = [
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
        migrations.AddConstraint(
            model_name='querysplit',
            constraint=models.UniqueConstraint(fields=('collection', 'name'), name='query_split_once'),
        ),
    ]
