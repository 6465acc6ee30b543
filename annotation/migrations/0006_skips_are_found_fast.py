from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0005_lean_indexes")]

    operations = [
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(
                condition=models.Q(("state", "skipped")), fields=["membership"], name="assignment_skipped"
            ),
        ),
    ]
