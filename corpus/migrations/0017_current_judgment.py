from django.db import migrations, models

VIEWS = """
CREATE VIEW judgment_head AS
SELECT * FROM corpus_judgment j
WHERE NOT EXISTS (SELECT FROM corpus_judgment later WHERE later.supersedes_id = j.id);

CREATE VIEW current_judgment AS SELECT * FROM judgment_head WHERE grade IS NOT NULL;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('corpus', '0016_rubric'),
    ]

    operations = [
        migrations.RunSQL(VIEWS, 'DROP VIEW current_judgment; DROP VIEW judgment_head'),
        migrations.CreateModel(
            name='CurrentJudgment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.CharField(choices=[('first', 'first'), ('final', 'final'), ('adjudication', 'adjudication'), ('import', 'import')], max_length=12)),
                ('grade', models.SmallIntegerField()),
                ('comment', models.TextField()),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'db_table': 'current_judgment',
                'managed': False,
            },
        ),
    ]
