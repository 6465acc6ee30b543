from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [('training', '0001_initial')]

    operations = [
        migrations.RenameField('job', 'claims', 'attempts'),
        migrations.RenameField('job', 'fence', 'fencing_token'),
        migrations.RenameField('job', 'is_stopping', 'cancel_asked'),
        migrations.RenameField('job', 'steps', 'done'),
        migrations.AlterField(
            model_name='job',
            name='attempts',
            field=models.PositiveSmallIntegerField(default=0, help_text='Claims since it last made progress.'),
        ),
        migrations.AlterField(
            model_name='job',
            name='cancel_asked',
            field=models.BooleanField(default=False, help_text='Its holder saves what it has and ends it.'),
        ),
        migrations.AlterField(
            model_name='job',
            name='done',
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AlterField(
            model_name='job',
            name='fencing_token',
            field=models.PositiveIntegerField(default=0, help_text='Rises with every claim; older holders lose.'),
        ),
        migrations.AlterField(
            model_name='job',
            name='lease_until',
            field=models.DateTimeField(help_text='Renewed by its holder; after it anybody may claim it.', null=True),
        ),
        migrations.AlterField(
            model_name='job',
            name='phase',
            field=models.CharField(blank=True, help_text='What it is doing now; done and total count that.', max_length=200),
        ),
        migrations.AlterField(
            model_name='job',
            name='started_at',
            field=models.DateTimeField(help_text='The first claim.', null=True),
        ),
        migrations.AlterField(
            model_name='job',
            name='total',
            field=models.PositiveBigIntegerField(default=0),
        ),
    ]
