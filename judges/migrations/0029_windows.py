from django.db import migrations, models

# The turns and votes on which the outcomes of pairs rest: of a document that was judged in windows, those about the one
# that decided (docs/adr/0117).
VIEW = """
CREATE VIEW counted_attempt AS
SELECT a.* FROM judges_attempt a
WHERE a.counts AND (a."window" = 0 OR EXISTS (
    SELECT FROM judges_work w
    WHERE w.campaign_id = a.campaign_id AND w.pair_id = a.pair_id AND w."window" = a."window"))
"""


class Migration(migrations.Migration):

    dependencies = [("judges", "0028_answered_by")]

    operations = [
        migrations.AddField(
            "work",
            "window",
            models.PositiveSmallIntegerField(
                default=0, db_default=0, help_text="Of a document judged in windows, the one that decided, from 1; else 0."
            ),
        ),
        migrations.AddField(
            "attempt",
            "window",
            models.PositiveSmallIntegerField(
                default=0, db_default=0, help_text="Which window of a long document it is about, from 1; 0: the document."
            ),
        ),
        migrations.RemoveConstraint("attempt", "attempt_counts_once"),
        migrations.AddConstraint(
            "attempt",
            models.UniqueConstraint(
                fields=["campaign", "pair", "role", "round", "agent_pair", "place", "generation", "window"],
                condition=models.Q(counts=True),
                name="attempt_counts_once",
            ),
        ),
        migrations.RunSQL(VIEW, "DROP VIEW counted_attempt"),
    ]
