from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('judges', '0005_evidence'),
    ]

    operations = [
        migrations.AddField(
            model_name='attempt',
            name='probabilities',
            field=models.JSONField(help_text='By answer, as the provider gave them: {yes, no}, {the score: P}, or one for each grade.', null=True),
        ),
        migrations.AddField(
            model_name='attempt',
            name='score',
            field=models.SmallIntegerField(help_text="Grade on the judge's own scale, where it has more than two.", null=True),
        ),
        migrations.AddField(
            model_name='campaign',
            name='protocol',
            field=models.JSONField(default=dict, help_text='judges.domain.protocol: stance order, filter and others.'),
        ),
        migrations.AddField(
            model_name='judgeversion',
            name='cached_input_price',
            field=models.FloatField(help_text='Of input that the provider took from its prompt cache; null: as other input.', null=True),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='role',
            field=models.CharField(choices=[('for', 'for'), ('against', 'against'), ('vote', 'vote'), ('generation', 'generation'), ('filter', 'filter'), ('adjudicate', 'adjudicate'), ('check', 'check'), ('write', 'write'), ('entity', 'entity'), ('measure', 'measure')], max_length=10),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='round',
            field=models.PositiveSmallIntegerField(default=0, help_text='From 1 in a debate; the number of a generation, from 0; else 0.'),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='sample',
            field=models.PositiveSmallIntegerField(default=0, help_text="The voter's place on the panel; in a debate the pair of agents, from 0."),
        ),
        migrations.AlterField(
            model_name='judgeversion',
            name='parameters',
            field=models.JSONField(default=dict, help_text='temperature, top_p, max_output_tokens, timeout_s, logprobs, scale and others'),
        ),
        migrations.AlterField(
            model_name='judgeversion',
            name='provider',
            field=models.CharField(choices=[('openai', 'OpenAI'), ('anthropic', 'Anthropic'), ('google', 'Google'), ('openai-compatible', 'OpenAI-compatible'), ('rerank-endpoint', 'rerank endpoint'), ('offline', 'offline')], max_length=20),
        ),
    ]
