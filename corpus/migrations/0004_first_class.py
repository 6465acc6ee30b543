"""Names of grades; whether a collection has the Lab."""

import django.contrib.postgres.fields
from django.db import migrations, models

LAB = "The menu has the pages for research (config.navigation.LAB)."


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
        # Collections that exist keep every page in their menu; new ones begin without the Lab.
        migrations.AddField("collection", "lab", models.BooleanField(default=True, db_default=True, help_text=LAB)),
        migrations.AlterField("collection", "lab", models.BooleanField(default=False, db_default=False, help_text=LAB)),
    ]
