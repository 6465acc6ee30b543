"""Learning curves are numbered from 1 in each collection (docs/adr/0116)."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from corpus.migrations._numbers import number_rows, rename_entries


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0037_numbers'),
        ('corpus', '0026_numbers'),
        ('training', '0007_numbers'),
    ]

    operations = [
        migrations.AddField(
            model_name='learningcurve',
            name='number',
            field=models.PositiveIntegerField(db_default=0, editable=False, help_text='In its collection, from 1.'),
        ),
        number_rows("training_learningcurve"),
        pgtrigger.migrations.AddTrigger(
            model_name='learningcurve',
            trigger=pgtrigger.compiler.Trigger(name='number', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."number" = 0)', func='\nINSERT INTO corpus_lastnumber AS last (collection_id, kind, number) VALUES (NEW.collection_id, TG_TABLE_NAME, 1)\nON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;\nRETURN NEW;\n', hash='a312bcffa4ca5e9ce336066ec2befe821336d910', operation='INSERT', pgid='pgtrigger_number_0b3ea', table='training_learningcurve', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='learningcurve',
            constraint=models.UniqueConstraint(fields=('collection', 'number'), name='learning_curve_number', nulls_distinct=False),
        ),
        rename_entries("training_learningcurve", "training.%", "curve"),
    ]
