from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("training", "0003_learning_curve")]

    operations = [
        migrations.RemoveConstraint("learningcurve", "learning_curve_folder"),
        migrations.RenameField("learningcurve", "folder", "out"),
        migrations.AddConstraint(
            "learningcurve",
            models.UniqueConstraint(
                condition=models.Q(("out", ""), _negated=True), fields=("out",), name="learning_curve_out"
            ),
        ),
    ]
