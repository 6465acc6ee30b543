import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """What one worker process holds of a campaign's budget."""

    dependencies = [("judges", "0003_offline_panel")]

    operations = [
        migrations.CreateModel(
            name="Reservation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("holder", models.CharField(max_length=64)),
                ("usd", models.FloatField(default=0.0)),
                ("calls", models.BigIntegerField(default=0)),
                ("until", models.DateTimeField()),
                (
                    "campaign",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="reservations", to="judges.campaign"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("campaign", "holder"), name="reservation_once")],
            },
        ),
    ]
