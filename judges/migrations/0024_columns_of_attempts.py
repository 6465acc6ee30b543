# What one column said of several roles stands in a column each; texts have no verdict (docs/adr/0080).

from django.db import migrations, models

ROUNDS = "('for', 'against', 'adjudicate')"
SPLIT = f"""
    ALTER TABLE judges_attempt DISABLE TRIGGER USER;
    UPDATE judges_attempt SET
        agent_pair = CASE WHEN role IN {ROUNDS} THEN sample ELSE 0 END,
        place = CASE WHEN role IN {ROUNDS} THEN 0 ELSE sample END,
        generation = CASE WHEN role IN {ROUNDS} THEN 0 ELSE round END,
        round = CASE WHEN role IN {ROUNDS} THEN round ELSE 0 END,
        verdict = CASE WHEN role IN ('write', 'entity', 'measure') THEN NULL ELSE verdict END
    WHERE sample <> 0 OR (round <> 0 AND role NOT IN {ROUNDS}) OR role IN ('write', 'entity', 'measure');
    ALTER TABLE judges_attempt ENABLE TRIGGER USER
"""
KIND = models.Case(
    models.When(policy="evidence", then=models.Value("writing")),
    models.When(policy="retrieval", then=models.Value("costs")),
    default=models.Value("judging"),
)


class Migration(migrations.Migration):

    dependencies = [("judges", "0023_starts_of_campaigns")]

    operations = [
        migrations.AddField(
            "campaign",
            "kind",
            models.GeneratedField(
                db_persist=True,
                expression=KIND,
                output_field=models.CharField(
                    max_length=7, choices=[("judging", "judging"), ("writing", "writing"), ("costs", "costs")]
                ),
            ),
        ),
        *(
            migrations.AddField(
                "attempt", name, models.PositiveSmallIntegerField(default=0, db_default=0, help_text=words)
            )
            for name, words in (
                ("agent_pair", "Which pair of agents speaks in the debate, from 0."),
                ("place", "The voter's place on the panel, or the judge's in the filter, from 0."),
                ("generation", "Which of several answers or texts, from 0."),
            )
        ),
        migrations.RemoveConstraint("attempt", "attempt_counts_once"),
        migrations.RemoveConstraint("attempt", "attempt_verdict"),
        migrations.RunSQL(SPLIT, migrations.RunSQL.noop),
        migrations.RemoveField("attempt", "sample"),
        migrations.AlterField(
            "attempt",
            "round",
            models.PositiveSmallIntegerField(default=0, help_text="Of the debate, from 1; 0: no part of a debate."),
        ),
        migrations.AlterField(
            "attempt",
            "verdict",
            models.SmallIntegerField(
                help_text="0 or 1; null unless labelled, and for texts, which say nothing about relevance.", null=True
            ),
        ),
        migrations.AddConstraint(
            "attempt",
            models.UniqueConstraint(
                fields=["campaign", "pair", "role", "round", "agent_pair", "place", "generation"],
                condition=models.Q(counts=True),
                name="attempt_counts_once",
            ),
        ),
        migrations.AddConstraint(
            "attempt",
            models.CheckConstraint(
                name="attempt_verdict",
                condition=models.Q(outcome="labelled", verdict__isnull=False)
                & ~models.Q(role__in=("write", "entity", "measure"))
                | models.Q(verdict=None),
            ),
        ),
    ]
