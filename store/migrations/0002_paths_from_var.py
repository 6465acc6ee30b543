"""Paths below VAR are stored with the mark of store.paths, whatever table they stand in."""

import json

from django.conf import settings
from django.db import migrations

MARK = "$QUORUM_VAR"
TEXTS = {"training_job": ("folder",), "training_model": ("folder", "base"), "annotation_snapshot": ("folder",)}
DOCUMENTS = {
    "training_job": ("options", "result"),
    "training_model": ("summary",),
    "annotation_snapshot": ("options",),
    "benchmark_run": ("recipe",),
    "benchmark_synthesis": ("options",),
}


def mark_paths(apps, schema_editor):
    begin = f"{settings.VAR}/"
    quoted = json.dumps(begin, ensure_ascii=False)[:-1]
    with schema_editor.connection.cursor() as cursor:
        for table, columns in TEXTS.items():
            for column in columns:
                cursor.execute(
                    f"UPDATE {table} SET {column} = %s || substr({column}, %s) WHERE starts_with({column}, %s)",
                    [f"{MARK}/", len(begin) + 1, begin],
                )
        for table, columns in DOCUMENTS.items():
            for column in columns:
                cursor.execute(
                    f"UPDATE {table} SET {column} = replace({column}::text, %s, %s)::jsonb"
                    f" WHERE strpos({column}::text, %s) > 0",
                    [quoted, f'"{MARK}/', quoted],
                )


class Migration(migrations.Migration):
    dependencies = [
        ("store", "0001_stored_files"),
        ("annotation", "0032_import_language"),
        ("benchmark", "0015_written_queries"),
        ("training", "0006_planned_points"),
    ]

    operations = [migrations.RunPython(mark_paths, migrations.RunPython.noop)]
