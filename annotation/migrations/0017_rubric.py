from django.db import migrations, models

# What collections without guidelines of their own told annotators until now, and the judgments that hold number 0.
BEFORE = """\
Decide one thing: does this document help to answer this query?

Relevant (1)
- It states an answer, a part of an answer, or a fact from which an answer follows.
- It supports at least one of the listed answers. It need not support all of them.
- It answers for the very thing that is asked about: the same person, version, place and time.

Not relevant (0)
- It shares words or the topic with the query, and answers nothing.
- It answers another question, however close.
- It only points to where an answer might be found.

How to judge
- Judge what the text says, not what you know about the subject.
- A short passage that answers is relevant; a long one that does not is not.
- Read the passage before the debate. The two sides argue as well as they can, and each may be wrong.
- When you cannot decide, flag the pair and say why. When you cannot read it, skip it.
"""


def keep_what_held(apps, schema_editor):
    """The built-in text of before becomes number 0, the one around the definition of relevance number 1."""
    from annotation.guidelines import built_in
    from corpus.rubric import Rubric

    collections, guidelines = apps.get_model("corpus", "Collection"), apps.get_model("annotation", "Guideline")
    for one in collections.objects.filter(guideline_version=0):
        rubric = Rubric(one.rubric, one.instruction)
        for version, text in enumerate((BEFORE, built_in(rubric))):
            guidelines.objects.create(collection=one, version=version, text=text, is_built_in=True)
        collections.objects.filter(pk=one.pk).update(guideline_version=1)


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0016_stored_agreement"),
        ("corpus", "0016_rubric"),
    ]

    operations = [
        migrations.AddField(
            model_name="guideline",
            name="is_built_in",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="The text is ours, in English: readers see it in their language.",
            ),
        ),
        migrations.RunPython(keep_what_held, migrations.RunPython.noop),
    ]
