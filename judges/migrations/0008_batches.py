import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("judges", "0007_canaries"),
    ]

    operations = [
        migrations.CreateModel(
            name="Batch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        help_text="Ours, by which it is found again after a kill.", max_length=40, unique=True
                    ),
                ),
                ("judge", models.JSONField(help_text="A judge of its account and model.")),
                ("model", models.CharField(max_length=200)),
                (
                    "provider_id",
                    models.CharField(blank=True, help_text="Empty until the provider has it.", max_length=200),
                ),
                ("calls", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "problem",
                    models.TextField(
                        blank=True, help_text="Why it ended without answers, or why it cannot be sent now."
                    ),
                ),
                (
                    "campaign",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="batches",
                        to="judges.campaign",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="BatchCall",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "group",
                    models.CharField(
                        help_text="Calls of one group go into one batch: account and model.", max_length=64
                    ),
                ),
                ("sent", models.BinaryField(help_text="zlib of the call as it leaves and its schema, JSON.")),
                (
                    "batch",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="waiting",
                        to="judges.batch",
                    ),
                ),
                (
                    "campaign",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="batch_calls", to="judges.campaign"
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="batch",
            index=models.Index(condition=models.Q(("ended_at", None)), fields=["campaign"], name="batch_open"),
        ),
    ]
