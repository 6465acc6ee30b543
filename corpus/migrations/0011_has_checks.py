from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('corpus', '0010_judging'),
    ]

    operations = [
        migrations.AddField(
            model_name='collection',
            name='has_checks',
            field=models.BooleanField(db_default=False, default=False, help_text='There are attention checks to be lent: else nobody looks for one.'),
        ),
    ]
