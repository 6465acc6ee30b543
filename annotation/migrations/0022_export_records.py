from django.db import migrations

HELD = """
INSERT INTO corpus_exportrecord (collection_id, export, at)
SELECT c.id, s.id, s.created_at
FROM annotation_snapshot s JOIN corpus_collection c
  ON c.id = s.collection_id OR s.options #> '{set,collections}' @> to_jsonb(c.name::text)
WHERE s.state <> 'failed' AND s.format NOT IN ('debates', 'aspects')
"""


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0021_failed_agreement'),
        ('corpus', '0018_export_record'),
    ]

    operations = [migrations.RunSQL(HELD, migrations.RunSQL.noop)]
