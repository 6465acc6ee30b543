from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('judges', '0017_circuits_and_assumed'),
    ]

    operations = [
        migrations.AddField(
            model_name='attempt',
            name='reasoning',
            field=models.TextField(blank=True, db_default='', default='', help_text='What the model thought before it answered, where it is told.'),
        ),
        migrations.AlterField(
            model_name='judgeversion',
            name='provider',
            field=models.CharField(help_text='Name of a preset (judges.presets).', max_length=40),
        ),
    ]
