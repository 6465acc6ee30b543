"""What statements share; names of grades; whether a collection has the Lab; formats of documents and answers, and their HTML; two indexes."""

from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
from django.db import migrations, models

from corpus.table_changes import ChangeTables

LAB = "The menu has the pages for research (config.navigation.LAB)."
UNDO = """
DROP VIEW held_label, current_pair, task_text;
DROP FUNCTION reference_of, reference_grades, queue_priority, next_seq, is_measuring
"""


class Migration(migrations.Migration):

    # What instances between the releases have applied.
    replaces = [
        ('corpus', '0003_functions'),
        ('corpus', '0004_first_class'),
    ]

    dependencies = [
        ('corpus', '0002_database'),
    ]

    operations = [
        migrations.AddField(
            model_name="collection",
            name="grade_names",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=250),
                blank=True,
                db_default=[],
                default=list,
                help_text="The grades' names from 0 on, each with a help after a colon; empty: the built-in ones.",
                size=None,
            ),
        ),
        migrations.AddField("collection", "lab", models.BooleanField(default=False, db_default=False, help_text=LAB)),
        # Collections that exist keep every page in their menu; new ones begin without the Lab.
        migrations.RunSQL("UPDATE corpus_collection SET lab = true", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="collection",
            name="document_format",
            field=models.CharField(
                choices=[("text", "Plain text"), ("markdown", "Markdown"), ("html", "HTML")],
                db_default="text",
                default="text",
                help_text="Of documents and answers: how pages show them, and how importers read them.",
                max_length=8,
            ),
        ),
        migrations.RunSQL(
            "UPDATE corpus_collection SET document_format = 'markdown' WHERE markdown",
            "UPDATE corpus_collection SET markdown = document_format = 'markdown'",
        ),
        migrations.RemoveField(model_name="collection", name="markdown"),
        migrations.AddField(
            model_name="document",
            name="html",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="The source of which `text` is the text, if it was imported as HTML "
                "(corpus.formats.html_documents).",
            ),
        ),
        migrations.AddField(
            model_name="query",
            name="answers_html",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(),
                blank=True,
                db_default=[],
                default=list,
                help_text='The answers\' sources, "" for an answer without markup; empty if none has any.',
                size=None,
            ),
        ),
        migrations.RunSQL(Path(__file__).with_name("0003_functions.sql").read_text(), UNDO),
        migrations.AddIndex(
            model_name="judgment",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["created_at"], name="judgment_time"
            ),
        ),
        migrations.AddIndex(
            model_name="judgment",
            index=models.Index(
                condition=models.Q(("comment", ""), _negated=True), fields=["pair"], name="judgment_commented"
            ),
        ),
    ]

    operations = [ChangeTables(operations)]
