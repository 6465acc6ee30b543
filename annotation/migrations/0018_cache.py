from django.db import migrations

TABLE = """
CREATE TABLE annotation_cache (
    cache_key varchar(255) PRIMARY KEY,
    value text NOT NULL,
    expires timestamptz NOT NULL
);
CREATE INDEX annotation_cache_expires ON annotation_cache (expires);
"""


class Migration(migrations.Migration):
    """The table of Django's cache, as `createcachetable` makes it."""

    dependencies = [("annotation", "0017_rubric")]

    operations = [migrations.RunSQL(TABLE, "DROP TABLE annotation_cache")]
