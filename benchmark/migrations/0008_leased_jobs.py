from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [('benchmark', '0007_filling_finishing')]

    operations = [
        migrations.RenameField('run', 'claims', 'attempts'),
        migrations.RenameField('run', 'fence', 'fencing_token'),
        migrations.RenameField('report', 'claims', 'attempts'),
        migrations.RenameField('report', 'fence', 'fencing_token'),
        migrations.AddField(
            model_name='report',
            name='cancel_asked',
            field=models.BooleanField(default=False, help_text='Its holder saves what it has and ends it.'),
        ),
        migrations.AddField(
            model_name='report',
            name='started_at',
            field=models.DateTimeField(help_text='The first claim.', null=True),
        ),
        migrations.AddField(
            model_name='run',
            name='cancel_asked',
            field=models.BooleanField(default=False, help_text='Its holder saves what it has and ends it.'),
        ),
        migrations.AddField(
            model_name='run',
            name='started_at',
            field=models.DateTimeField(help_text='The first claim.', null=True),
        ),
        migrations.AlterField(
            model_name='report',
            name='attempts',
            field=models.PositiveSmallIntegerField(default=0, help_text='Claims since it last made progress.'),
        ),
        migrations.AlterField(
            model_name='report',
            name='fencing_token',
            field=models.PositiveIntegerField(default=0, help_text='Rises with every claim; older holders lose.'),
        ),
        migrations.AlterField(
            model_name='report',
            name='lease_until',
            field=models.DateTimeField(help_text='Renewed by its holder; after it anybody may claim it.', null=True),
        ),
        migrations.AlterField(
            model_name='run',
            name='attempts',
            field=models.PositiveSmallIntegerField(default=0, help_text='Claims since it last made progress.'),
        ),
        migrations.AlterField(
            model_name='run',
            name='fencing_token',
            field=models.PositiveIntegerField(default=0, help_text='Rises with every claim; older holders lose.'),
        ),
        migrations.AlterField(
            model_name='run',
            name='lease_until',
            field=models.DateTimeField(help_text='Renewed by its holder; after it anybody may claim it.', null=True),
        ),
    ]
