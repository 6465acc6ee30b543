from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("corpus", "0024_long_documents")]

    operations = [
        migrations.AlterField(
            model_name="collection",
            name="long_documents",
            field=models.CharField(
                choices=[
                    ("cut", "Judges read the first 24,000 characters"),
                    ("people", "People judge them"),
                    ("windows", "Judges read them in windows, each apart; one relevant window is enough"),
                    ("context", "Judges read them whole, as far as their own context reaches"),
                ],
                db_default="cut",
                default="cut",
                help_text="What is done with documents of more than 24,000 characters (corpus.long_documents).",
                max_length=7,
            ),
        )
    ]
