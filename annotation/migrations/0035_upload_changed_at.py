import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0034_query_split'),
    ]

    operations = [
        migrations.AlterField(
            model_name='upload',
            name='created_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.AddField(
            model_name='upload',
            name='changed_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True, help_text='When the last part came.'),
        ),
    ]
