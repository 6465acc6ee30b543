"""The order of items in the queue, and views of judgments."""

from pathlib import Path

from django.db import migrations

UNDO = """
DROP VIEW current_judgment;
DROP VIEW judgment_head;
ALTER TABLE corpus_item ALTER COLUMN place DROP DEFAULT;
DROP SEQUENCE corpus_item_place
"""


class Migration(migrations.Migration):
    dependencies = [("corpus", "0001_initial")]

    operations = [
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), UNDO),
    ]
