"""Gold arguments and pages that were asked for wait as jobs."""

from typing import Any

from django.db import migrations
from django.db.migrations.state import StateApps

MOST_TRIES = 30


def ask_again(apps: StateApps, _schema: Any) -> None:
    """Jobs for what waited."""
    background_job = apps.get_model("jobs", "BackgroundJob")
    requests = apps.get_model("annotation", "ArgumentsRequest").objects.filter(ended_at=None, tries__lt=MOST_TRIES)
    drafts = apps.get_model("annotation", "PassageDraft").objects.filter(state__in=["waiting", "fetching"])
    waiting = {"annotation.write_gold_reasons": requests, "annotation.fetch_passage": drafts}
    background_job.objects.bulk_create(
        background_job(kind=kind, subject=pk) for kind, rows in waiting.items() for pk in rows.values_list("pk", flat=True)
    )


class Migration(migrations.Migration):
    dependencies = [("annotation", "0023_stored_results_are_jobs")]

    operations = [
        migrations.RunPython(ask_again, migrations.RunPython.noop),
        migrations.RemoveIndex("argumentsrequest", "arguments_waiting"),
        migrations.RemoveField("argumentsrequest", "posted_at"),
        migrations.RemoveField("argumentsrequest", "tries"),
    ]
