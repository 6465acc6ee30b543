from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('benchmark', '0015_written_queries'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='search',
            field=models.JSONField(default=dict, help_text='Where an index was searched: its recall, and what it was measured on (vector_index).'),
        ),
    ]
