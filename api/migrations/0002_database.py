"""Triggers that write events of webhooks."""

from pathlib import Path

from django.db import migrations

UNDO = """
DROP FUNCTION tell_campaign_state, tell_tasks_resolved, tell_audit_alarm, tell_export_ready, tell_training_ended CASCADE;
DROP FUNCTION write_webhook_event
"""


class Migration(migrations.Migration):
    dependencies = [
        ("api", "0001_initial"),
        ("annotation", "0001_initial"),
        ("judges", "0001_initial"),
        ("training", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), UNDO),
    ]
