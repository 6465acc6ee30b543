from django.db import migrations


class Migration(migrations.Migration):
    """The order of items in the queue: a returned item takes a new place at the end."""

    dependencies = [("corpus", "0001_initial")]

    operations = [
        migrations.RunSQL(
            "CREATE SEQUENCE corpus_item_place; ALTER TABLE corpus_item ALTER COLUMN place SET DEFAULT nextval('corpus_item_place')",
            "ALTER TABLE corpus_item ALTER COLUMN place DROP DEFAULT; DROP SEQUENCE corpus_item_place",
        )
    ]
