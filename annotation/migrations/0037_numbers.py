"""Imports and exports are numbered from 1 in each collection; the audit log calls them so (docs/adr/0116)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

# Existing rows are numbered in the order in which they were made.
NUMBER_ROWS = """
UPDATE {table} r SET number = n.number FROM (
    SELECT id, row_number() OVER (PARTITION BY collection_id ORDER BY id) AS number FROM {table}) n
WHERE n.id = r.id;
INSERT INTO corpus_lastnumber (collection_id, kind, number)
SELECT collection_id, '{table}', max(number) FROM {table} GROUP BY 1
"""
FORGET = "DELETE FROM corpus_lastnumber WHERE kind = '{table}'"

# Entries call by its number what they called by its primary key. Nothing else about them changes.
RENAME = """
ALTER TABLE annotation_auditentry DISABLE TRIGGER USER;
UPDATE annotation_auditentry e SET details = jsonb_set(e.details, '{campaign}', to_jsonb(r.{new})) FROM judges_campaign r
WHERE e.details -> 'campaign' = to_jsonb(r.{old}) AND r.collection_id = e.collection_id;
UPDATE annotation_auditentry e SET details = jsonb_set(e.details, '{snapshot}', to_jsonb(r.{new})) FROM annotation_snapshot r
WHERE e.details -> 'snapshot' = to_jsonb(r.{old}) AND r.collection_id = e.collection_id;
UPDATE annotation_auditentry e SET details = jsonb_set(e.details, '{number}', to_jsonb(r.{new})) FROM annotation_fileimport r
WHERE e.act = 'import.files' AND e.details -> 'number' = to_jsonb(r.{old}) AND r.collection_id = e.collection_id;
ALTER TABLE annotation_auditentry ENABLE TRIGGER USER
"""
# Saved views narrow the table of pairs to a campaign. Beyond nine digits there is no campaign, nor was one.
VIEWS = """
UPDATE annotation_savedview v SET query = regexp_replace(v.query, '(^|&)campaign=[0-9]+', '\\1campaign=' || r.{new})
FROM judges_campaign r
WHERE r.collection_id = v.collection_id AND r.{old} = substring(v.query FROM '(?:^|&)campaign=([0-9]{1,9})(?:&|$)')::bigint
"""
# Stored figures name campaigns by their primary keys: pages ask for new ones.
FIGURES = """
UPDATE annotation_computed SET "values" = "values" - 'policies' || CASE
    WHEN "values" ? 'audits' THEN '{"audits": null}'::jsonb ELSE '{}'::jsonb END
"""
RECORDS = """
UPDATE corpus_exportrecord e SET number = s.number FROM annotation_snapshot s WHERE s.id = e.export
"""


def rename(statements: str, new: str, old: str) -> str:
    return statements.replace("{new}", new).replace("{old}", old)


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0036_imports_looked_at'),
        ('corpus', '0026_numbers'),
        ('judges', '0030_numbers'),
    ]

    operations = [
        migrations.AddField(
            model_name='fileimport',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        migrations.AddField(
            model_name='snapshot',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        *(
            migrations.RunSQL(NUMBER_ROWS.format(table=table), FORGET.format(table=table))
            for table in ("annotation_fileimport", "annotation_snapshot")
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='fileimport',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='5f3126b407b17cc93e8c17d1ef37dc7b2c9b2686', operation='INSERT', pgid='pgtrigger_number_8eb37', table='annotation_fileimport', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='snapshot',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='6366b20441c0f40bfbbb82032791a8f343149cdc', operation='INSERT', pgid='pgtrigger_number_0525c', table='annotation_snapshot', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='fileimport',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='file_import_number'),
        ),
        migrations.AddConstraint(
            model_name='snapshot',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='snapshot_number'),
        ),
        migrations.RunSQL(rename(RENAME, "number", "id"), rename(RENAME, "id", "number")),
        migrations.RunSQL(rename(VIEWS, "number", "id"), rename(VIEWS, "id", "number")),
        migrations.RunSQL(FIGURES, FIGURES),
        migrations.RunSQL(RECORDS, migrations.RunSQL.noop),
    ]
