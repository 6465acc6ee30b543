"""Web searches are numbered from 1 in each collection (docs/adr/0116)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from corpus.migrations._numbers import number_rows, rename_entries


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0037_numbers'),
        ('corpus', '0026_numbers'),
    ]

    operations = [
        migrations.AddField(
            model_name='websearch',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        number_rows("annotation_websearch"),
        pgtrigger.migrations.AddTrigger(
            model_name='websearch',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='7692fc91534904cd22238f5153e0fefa4a1a0621', operation='INSERT', pgid='pgtrigger_number_11145', table='annotation_websearch', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='websearch',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='web_search_number'),
        ),
        rename_entries("annotation_websearch", "import.web%", "number"),
    ]
