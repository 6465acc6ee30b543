"""What campaigns and collections spent and hold is summed up when it is asked for (docs/adr/0110).

Campaign.spent and its three neighbours repeated what tallies and reservations say; the one row of a collection becomes
the first of its shards.
"""

import django.db.models.deletion
from django.db import migrations, models

FILL = """
INSERT INTO judges_collectiontally (collection_id, shard, spent, day, day_spent)
SELECT collection_id, 0, spent, day, day_spent FROM judges_account
"""
FILL_BACK = """
INSERT INTO judges_account (collection_id, spent, reserved, calls_reserved, day, day_spent)
SELECT t.collection_id, sum(t.spent), COALESCE(max(h.usd), 0), COALESCE(max(h.calls), 0),
    (now() AT TIME ZONE 'UTC')::date,
    COALESCE(sum(t.day_spent) FILTER (WHERE t.day = (now() AT TIME ZONE 'UTC')::date), 0)
FROM judges_collectiontally t LEFT JOIN (
    SELECT c.collection_id, sum(v.usd) AS usd, sum(v.calls) AS calls
    FROM judges_reservation v JOIN judges_campaign c ON c.id = v.campaign_id GROUP BY 1) h USING (collection_id)
GROUP BY 1;
UPDATE judges_campaign c SET spent = s.usd, calls_spent = s.calls FROM (
    SELECT campaign_id,
        COALESCE(sum(value) FILTER (WHERE key IN ('cost', 'cost_assumed', 'cost_possible')), 0) AS usd,
        COALESCE(sum(value) FILTER (WHERE key IN ('calls', 'calls_possible')), 0) AS calls
    FROM judges_tally GROUP BY 1) s WHERE s.campaign_id = c.id;
UPDATE judges_campaign c SET reserved = h.usd, calls_reserved = h.calls FROM (
    SELECT campaign_id, sum(usd) AS usd, sum(calls) AS calls FROM judges_reservation GROUP BY 1) h
WHERE h.campaign_id = c.id
"""


class Migration(migrations.Migration):
    dependencies = [
        ("corpus", "0001_initial"),
        ("judges", "0026_web_search_role"),
    ]

    operations = [
        migrations.CreateModel(
            name="CollectionTally",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("shard", models.PositiveSmallIntegerField()),
                (
                    "spent",
                    models.FloatField(
                        db_default=0.0,
                        default=0.0,
                        help_text="USD, with what is assumed of calls whose cost is unknown.",
                    ),
                ),
                (
                    "day",
                    models.DateField(help_text="The UTC day that `day_spent` belongs to; on another day that is 0."),
                ),
                ("day_spent", models.FloatField(db_default=0.0, default=0.0)),
                (
                    "collection",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tallies",
                        to="corpus.collection",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "collection tallies",
                "constraints": [
                    models.UniqueConstraint(fields=("collection", "shard"), name="collection_tally_once")
                ],
            },
        ),
        migrations.RunSQL(FILL, FILL_BACK),
        migrations.DeleteModel(name="Account"),
        migrations.RemoveField(model_name="campaign", name="reserved"),
        migrations.RemoveField(model_name="campaign", name="spent"),
        migrations.RemoveField(model_name="campaign", name="calls_reserved"),
        migrations.RemoveField(model_name="campaign", name="calls_spent"),
    ]
