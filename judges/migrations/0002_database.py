"""Bodies of attempts, a view of those that count, the offline panel and the schedule of canaries."""

from pathlib import Path
from typing import Any

from django.db import migrations

UNDO = """
DROP VIEW counted_attempt;
DROP TABLE judges_attemptbody;
DROP FUNCTION judges_no_truncate
"""

DEBATE = ["offline-for", "offline-against"]
ENSEMBLE = ["offline-answers", "offline-bm25", "offline-tfidf", "offline-coverage", "offline-ngrams"]


def create_offline_panel(apps: Any, schema_editor: Any) -> None:
    """Create the offline judges and the panel of them, the default until configure_judges loads another."""
    judges = apps.get_model("judges", "JudgeVersion").objects
    for name in DEBATE + ENSEMBLE:
        judges.create(name=name, provider="offline", model=name.removeprefix("offline-"))
    apps.get_model("judges", "Panel").objects.create(
        name="offline", debate=DEBATE, ensemble=ENSEMBLE, majority=3, is_default=True
    )


# Judges without a price are asked once a day from tomorrow on; those that cost money when somebody says so.
CANARIES = """
INSERT INTO judges_canaryschedule (id, panel, hours, paid, due_at)
VALUES (1, '', 24, false, now() + interval '24 hours')
"""


class Migration(migrations.Migration):
    dependencies = [("judges", "0001_initial")]

    operations = [
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), UNDO),
        migrations.RunPython(create_offline_panel, migrations.RunPython.noop),
        migrations.RunSQL(CANARIES, migrations.RunSQL.noop),
    ]
