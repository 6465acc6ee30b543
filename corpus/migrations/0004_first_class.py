"""Names of grades."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("corpus", "0003_functions")]

    operations = [
        migrations.AddField(
            model_name="collection",
            name="grade_names",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=250),
                blank=True,
                db_default=[],
                default=list,
                help_text="The grades' names from 0 on, each with a help after a colon; empty: the built-in ones.",
                size=None,
            ),
        ),
    ]
