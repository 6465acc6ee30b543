"""What workers were asked to compute is a job: what was asked for and not answered yet waits for a worker."""

from typing import Any

from django.db import migrations
from django.db.migrations.state import StateApps


def ask_again(apps: StateApps, _schema: Any) -> None:
    """Jobs for what stood as asked for."""
    background_job = apps.get_model("jobs", "BackgroundJob")
    computed = apps.get_model("annotation", "Computed").objects
    agreement = apps.get_model("annotation", "StoredAgreement").objects.exclude(asked_at=None)
    near = computed.filter(values__near__asked__gt="")
    waiting = {
        "annotation.compute_statistics": computed.exclude(asked_at=None).values_list("collection", flat=True),
        "annotation.compare_near_pairs": near.values_list("collection", flat=True),
        "annotation.compute_agreement": agreement.values_list("pk", flat=True),
    }
    background_job.objects.bulk_create(
        background_job(kind=kind, subject=pk) for kind, keys in waiting.items() for pk in keys
    )


class Migration(migrations.Migration):
    dependencies = [("annotation", "0022_export_records"), ("jobs", "0001_background_jobs")]

    operations = [
        migrations.RunPython(ask_again, migrations.RunPython.noop),
        migrations.RemoveField("computed", "asked_at"),
        migrations.RemoveField("storedagreement", "asked_at"),
    ]
