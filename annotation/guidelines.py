"""What annotators are told: versions of the guidelines, and the text that holds until somebody writes one."""

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Guideline, User
from corpus.models import Collection

DEFAULT = gettext_noop("""\
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
""")


def current(collection: Collection) -> tuple[int, str]:
    """The number and text of the guidelines that hold; number 0 is the built-in text."""
    newest = collection.guidelines.order_by("-version").values_list("version", "text").first()
    return newest or (0, _(DEFAULT))


def versions(collection: Collection) -> QuerySet[Guideline]:
    """All versions that were written, newest first, with their writers."""
    return collection.guidelines.select_related("written_by").order_by("-version")


@transaction.atomic
def write(*, collection: Collection, text: str, author: User) -> int:
    """Keep a new version and return its number; the same text again changes nothing."""
    Collection.objects.select_for_update().get(pk=collection.pk)
    version, held = current(collection)
    text = text.replace("\r\n", "\n").strip() + "\n"
    if text == held:
        return version
    made = Guideline.objects.create(collection=collection, version=version + 1, text=text, written_by=author)
    Collection.objects.filter(pk=collection.pk).update(guideline_version=made.version)
    return made.version
