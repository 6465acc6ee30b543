"""What migrations that number the rows of a table in each collection do to what is there (docs/adr/0116)."""

from django.db import migrations

# In the order in which they were made; those without a collection among each other.
ROWS = """
UPDATE {table} r SET number = n.number FROM (
    SELECT id, row_number() OVER (PARTITION BY collection_id ORDER BY id) AS number FROM {table}) n
WHERE n.id = r.id;
INSERT INTO corpus_lastnumber (collection_id, kind, number)
SELECT collection_id, '{table}', max(number) FROM {table} GROUP BY 1
"""
FORGET = "DELETE FROM corpus_lastnumber WHERE kind = '{table}'"
# Entries of the audit log call by its number what they called by its primary key. Nothing else about them changes.
ENTRIES = """
ALTER TABLE annotation_auditentry DISABLE TRIGGER USER;
UPDATE annotation_auditentry e SET details = jsonb_set(e.details, '{{{key}}}', to_jsonb(r.{new})) FROM {table} r
WHERE e.act LIKE '{acts}' AND e.details -> '{key}' = to_jsonb(r.{old}) AND r.collection_id = e.collection_id;
ALTER TABLE annotation_auditentry ENABLE TRIGGER USER
"""


def number_rows(table: str) -> migrations.RunSQL:
    """Number the rows of `table`, which has the column already and neither the trigger nor the constraint."""
    return migrations.RunSQL(ROWS.format(table=table), FORGET.format(table=table))


def rename_entries(table: str, acts: str, key: str) -> migrations.RunSQL:
    """Let the audit log call rows of `table` by number: in the detail `key` of acts that are LIKE `acts`.

    The migration depends on annotation.0037_numbers, and comes after the rows have their numbers.
    """
    there, back = (
        ENTRIES.format(table=table, acts=acts, key=key, new=new, old=old)
        for new, old in (("number", "id"), ("id", "number"))
    )
    return migrations.RunSQL(there, back)
