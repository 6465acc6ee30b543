"""Guidelines of annotators: versions, and the built-in text around the definition of relevance."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, override

from annotation.models import Guideline, Membership, User
from corpus.holding import hold
from corpus.models import Collection, Query
from corpus.rubric import Rubric

HEAD = gettext_noop("Is this document relevant to this query?")
# Introduce the definition of each kind of query where the definitions differ.
WHERE = (gettext_noop("If the query lists answers:"), gettext_noop("If the query lists no answers:"))
HOW = (
    gettext_noop("How to judge"),
    gettext_noop("- Judge what the text says, not what you know about the topic."),
    gettext_noop("- If a query has its own relevance definition, it applies to all pairs of that query."),
    gettext_noop("- The length of the text does not matter."),
    gettext_noop("- Read the text before the debate. Both sides argue as well as they can, and each may be wrong."),
    gettext_noop("- If you cannot decide, flag the pair and explain why. If you cannot read it, skip it."),
)

# Texts to begin with, each with two worked examples, in guideline_templates/ in every language of the site.
TEMPLATES = {
    "web": gettext_noop("Web search"),
    "rag": gettext_noop("Answering questions from passages (RAG)"),
    "products": gettext_noop("Product search"),
    "literature": gettext_noop("Literature search"),
}


def template_text(rubric: Rubric, name: str, language: str) -> str:
    """Return a text to begin with, in a language of the site, around the definition of relevance.

    Raises KeyError for a name that is not in TEMPLATES, or another language.
    """
    if name not in TEMPLATES or language not in dict(settings.LANGUAGES):
        raise KeyError(name)
    path = Path(__file__).with_name("guideline_templates") / f"{name}.{language}.txt"
    with override(language):
        definition = translate_lines(relevance_definition(rubric))
    return path.read_text(encoding="utf-8").replace("{definition}", definition)


def relevance_definition(rubric: Rubric) -> str:
    """Return the relevance definition in English, the same one that judges, training sets and rerankers get."""
    definitions = rubric.definitions()
    if len(definitions) == 1:
        return definitions[0].text
    return "\n\n".join(f"{where}\n\n{definition.text}" for where, definition in zip(WHERE, definitions, strict=True))


def built_in(rubric: Rubric) -> str:
    """Return the English text that applies until an admin writes one."""
    return "\n\n".join([HEAD, relevance_definition(rubric), "\n".join(HOW)]) + "\n"


def translate_lines(text: str) -> str:
    """Translate a built-in text line by line into the reader's language."""
    return "\n".join(_(line) if line.strip() else line for line in text.split("\n"))


def current(collection: Collection) -> tuple[int, str]:
    """Return the number and text of the current guidelines; number 0 is the built-in text."""
    newest = _newest_version(collection)
    if newest is None:
        return 0, translate_lines(built_in(collection.relevance))
    return newest.version, displayed_text(newest)


def displayed_text(guideline: Guideline) -> str:
    """Return the text of a guideline, a built-in one in the reader's language."""
    return translate_lines(guideline.text) if guideline.is_built_in else guideline.text


def versions(collection: Collection) -> QuerySet[Guideline]:
    """Return all stored versions with their writers, newest first."""
    return collection.guidelines.select_related("written_by").order_by("-version")


def follows_definition(collection: Collection) -> bool:
    """Return whether the guidelines contain the judges' relevance definition verbatim, in any language."""
    newest = _newest_version(collection)
    if newest is None:
        return True
    definitions = collection.relevance.definitions()
    if len(definitions) > 1:
        # Only the definitions that apply to queries of the collection; all where there is no query yet.
        queries = Query.objects.filter(collection=collection, is_current=True)
        is_used = (queries.exclude(answers=[]).exists(), queries.filter(answers=[]).exists())
        used = tuple(definition for definition, has_queries in zip(definitions, is_used, strict=True) if has_queries)
        definitions = used or definitions
    text = " ".join(newest.text.split())
    lines = [line for definition in definitions for line in definition.text.split("\n") if line.strip()]
    for code, _name in settings.LANGUAGES:
        with override(code):
            if all(" ".join(_(line).split()) in text for line in lines):
                return True
    return False


@transaction.atomic
def write(*, collection: Collection, text: str, author: User | None) -> int:
    """Store a new version of the guidelines, unless the text is the current one; return the version's number."""
    collection = hold(Collection.objects, collection.pk, no_key=True)
    version, current_text = current(collection)
    text = text.replace("\r\n", "\n").strip() + "\n"
    if text == current_text:
        return version
    built_in_text = built_in(collection.relevance)
    is_built_in = text in (built_in_text, translate_lines(built_in_text))
    return _add_version(collection, collection.relevance, built_in_text if is_built_in else text, author, is_built_in)


@contextmanager
def record_redefinition(collection: Collection, author: User | None = None) -> Iterator[None]:
    """Store a new guideline version where the code in this context changes the relevance definition.

    A built-in text gets the new definition. An admin's own text stays as it is under a new number, so
    that each judgment tells which definition applied; nobody is asked to read it again.
    """
    with transaction.atomic():
        before = hold(Collection.objects, collection.pk, no_key=True).relevance
        yield
        after = Collection.objects.get(pk=collection.pk)
        if before.definitions() == after.relevance.definitions():
            return
        newest = _newest_version(after)
        if newest is None or newest.is_built_in:
            _add_version(after, before, built_in(after.relevance), author, True)
        else:
            version = _add_version(after, before, newest.text, author, False)
            readers = Membership.objects.filter(collection=after, guideline_read=newest.version)
            readers.update(guideline_read=version)


def _add_version(collection: Collection, before: Rubric, text: str, author: User | None, is_built_in: bool) -> int:
    """Store the next version and return its number; before the first, store the built-in text as number 0."""
    # Judgments from before the first version refer to number 0.
    newest = _newest_version(collection) or Guideline.objects.create(
        collection=collection, version=0, text=built_in(before), is_built_in=True
    )
    guideline = Guideline.objects.create(
        collection=collection, version=newest.version + 1, text=text, written_by=author, is_built_in=is_built_in
    )
    Collection.objects.filter(pk=collection.pk).update(guideline_version=guideline.version)
    return guideline.version


def _newest_version(collection: Collection) -> Guideline | None:
    return collection.guidelines.order_by("-version").first()
