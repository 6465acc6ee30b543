"""The table of Django's cache."""

from pathlib import Path

from django.db import migrations

UNDO = """
DROP TABLE annotation_cache
"""


class Migration(migrations.Migration):
    dependencies = [("annotation", "0001_initial")]

    operations = [
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), UNDO),
    ]
