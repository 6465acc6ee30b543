from django.db import migrations

DEBATE = ["offline-for", "offline-against"]
ENSEMBLE = ["offline-answers", "offline-bm25", "offline-tfidf", "offline-coverage", "offline-ngrams"]


def create(apps, schema_editor) -> None:
    """The offline judges and the panel of them, the default until configure_judges loads another."""
    judges = apps.get_model("judges", "JudgeVersion").objects
    for name in DEBATE + ENSEMBLE:
        judges.get_or_create(name=name, defaults={"provider": "offline", "model": name.removeprefix("offline-")})
    panels = apps.get_model("judges", "Panel").objects
    is_default = not panels.filter(is_default=True).exists()
    panels.get_or_create(
        name="offline", defaults={"debate": DEBATE, "ensemble": ENSEMBLE, "majority": 3, "is_default": is_default}
    )


class Migration(migrations.Migration):
    """A panel named offline exists from the start."""

    dependencies = [("judges", "0002_attempt_bodies")]

    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
