"""What statements share: numbers and order of the queue's items, reference grades, current pairs, labels in exports."""

from pathlib import Path

from django.db import migrations

UNDO = """
DROP VIEW held_label, current_pair, task_text;
DROP FUNCTION reference_of, reference_grades, queue_priority, next_seq, is_measuring
"""


class Migration(migrations.Migration):
    dependencies = [("corpus", "0002_database")]

    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), UNDO)]
