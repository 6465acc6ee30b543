from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0010_judging'),
    ]

    operations = [
        migrations.AddField(
            model_name='membership',
            name='closed_to',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='Of those lent, how many are in batches that were looked at.'),
        ),
    ]
