"""The event of a gate for webhooks."""

from pathlib import Path

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    # What instances between the releases have applied.
    replaces = [
        ('api', '0003_gates'),
    ]

    dependencies = [
        ('api', '0001_version_0_1_0'),
        ('benchmark', '0002_after_0_1_0'),
    ]

    operations = [
        migrations.AlterField(
            model_name='webhook',
            name='events',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('campaign.ended', 'Campaign ended: finished or cancelled'), ('campaign.stopped', 'Campaign stopped: by its budget, or paused'), ('task.resolved', 'Task resolved by people'), ('audit.alarm', 'Label audit alarm: a route is wrong too often'), ('export.ready', 'Export ready'), ('training.ended', 'Training ended: finished, failed or cancelled'), ('gate.decided', 'Gate decided: pass, fail or cannot tell')], max_length=20), size=None),
        ),
        migrations.RunSQL(
            Path(__file__).with_name("0002_gates.sql").read_text(), "DROP FUNCTION tell_gate_decided CASCADE"
        ),
    ]
