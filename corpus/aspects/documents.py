"""Documents under aspects: keep, discard with a reason, reopen; add, join and cut passages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from corpus.aspects.passages import AspectPassage, find_gaps, in_order, join_texts, source_of
from corpus.aspects.revising import Act, AspectChange, LockedAspectSet, RevisionDecision, lock_aspects
from corpus.errors import BadInput
from corpus.importing.table_records import content_hash
from corpus.models import Assessor, Document, Query
from corpus.models.aspects import AspectRevision
from corpus.search import full_text

LONGEST = 200_000  # The most characters of a passage.
LONGEST_REASON = 1_000


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A text that becomes a document under one or more aspects. `metadata["source"]`: its origin."""

    title: str
    text: str
    aspects: Sequence[str]
    metadata: Mapping[str, Any]


@transaction.atomic
def keep(query: Query, author: Assessor, document: Document, aspects: Sequence[str]) -> AspectRevision:
    """Keep the document under exactly these aspects of the query. An earlier discard no longer applies."""
    aspect_set = lock_aspects(query)
    # A form may name an aspect more than once.
    names = list(dict.fromkeys(aspects))
    _check_aspects(aspect_set, names)
    if not names:
        raise BadInput(_("Choose the aspects that the document supports, or discard it with a reason."))
    # The decisions on other aspects are withdrawn: deselecting an aspect is not a discard with a reason.
    other_ids = [entry.id for entry in aspect_set.entries if entry.id not in names]
    decisions = [RevisionDecision(document.pk, name, True) for name in names]
    decisions += [RevisionDecision(document.pk, name, None) for name in other_ids]
    return aspect_set.revise(
        author, Act.KEEP, AspectChange(aspect_set.entries, decisions, f"{document} → {', '.join(names)}")
    )


@transaction.atomic
def discard(query: Query, author: Assessor, document: Document, reason: str) -> AspectRevision:
    """Record that the document supports none of the aspects, with the reason."""
    reason = " ".join(reason.split())[:LONGEST_REASON]
    if not reason:
        raise BadInput(_("Say why the document supports no aspect."))
    aspect_set = lock_aspects(query)
    _check_aspects(aspect_set, [])
    # Under every current aspect; for an aspect that is added later the document is undecided.
    decisions = [RevisionDecision(document.pk, entry.id, False, reason) for entry in aspect_set.entries]
    return aspect_set.revise(author, Act.DISCARD, AspectChange(aspect_set.entries, decisions, f"{document}: {reason}"))


@transaction.atomic
def reopen(query: Query, author: Assessor, document: Document) -> AspectRevision:
    """Reopen a document for all aspects: it is neither kept nor discarded."""
    aspect_set = lock_aspects(query)
    judgments = aspect_set.current_judgments([entry.id for entry in aspect_set.entries])
    judged_aspects = [
        name for (pk, name), judgment in judgments.items() if pk == document.pk and judgment.grade is not None
    ]
    decisions = [RevisionDecision(document.pk, name, None) for name in judged_aspects]
    return aspect_set.revise(author, Act.REOPEN, AspectChange(aspect_set.entries, decisions, str(document)))


@transaction.atomic
def add_passages(query: Query, author: Assessor, new: Sequence[NewPassage]) -> AspectRevision:
    """Create documents under aspects. A text that exists already is the same document."""
    aspect_set = lock_aspects(query)
    if not new:
        raise BadInput(_("Assign at least one sentence to an aspect."))
    documents, decisions = _store_passages(aspect_set, new)
    return aspect_set.revise(
        author, Act.PASSAGE, AspectChange(aspect_set.entries, decisions, ", ".join(map(str, documents)))
    )


@transaction.atomic
def cut(query: Query, author: Assessor, document: Document, parts: Sequence[NewPassage]) -> AspectRevision:
    """Create documents of portions of a document, which itself supports no aspect any more."""
    aspect_set = lock_aspects(query)
    if not parts:
        raise BadInput(_("Assign at least one sentence to an aspect."))
    # A single part with the whole text would change only the name.
    if len(parts) == 1 and parts[0].text.strip() == document.text.strip():
        raise BadInput(_("This is the whole text under one aspect. Keep the document under that aspect instead."))
    documents, decisions = _store_passages(aspect_set, parts)
    names = ", ".join(map(str, documents))
    # The reason names the parts, so that a reader finds them.
    decisions += [RevisionDecision(document.pk, entry.id, False, f"cut into {names}") for entry in aspect_set.entries]
    return aspect_set.revise(author, Act.CUT, AspectChange(aspect_set.entries, decisions, f"{document} → {names}"))


@transaction.atomic
def join(query: Query, author: Assessor, documents: Sequence[Document], aspect: str) -> AspectRevision:
    """Create one document of contiguous passages of one source that are kept under the aspect."""
    aspect_set = lock_aspects(query)
    # In the order of their chunks, so that the joined text is continuous.
    passages = in_order([as_passage(document) for document in documents])
    if len(passages) < 2:
        raise BadInput(_("Choose two or more passages to join."))
    sources = sorted({passage.source for passage in passages})
    if len(sources) > 1:
        message = _("Only passages from the same source can be joined. These come from %(names)s.")
        raise BadInput(message % {"names": ", ".join(sources)})
    for before, after in find_gaps(passages):
        message = _("Only adjacent passages can be joined. There is text missing between %(one)s and %(other)s.")
        raise BadInput(message % {"one": before, "other": after})
    judgments = aspect_set.current_judgments([aspect])
    # Only kept passages: joining must not add a text that was not judged to support the aspect.
    if not all((judgment := judgments.get((document.pk, aspect))) and judgment.grade for document in documents):
        raise BadInput(_("Keep all of these passages under the aspect before you join them."))
    first, last = passages[0].first, passages[-1].last
    # The source of the joined document is that of its first passage.
    first_document = next(document for document in documents if document.external_id == passages[0].id)
    source = first_document.metadata.get("source")
    metadata = {
        "source": dict(source) if isinstance(source, dict) else {"document": passages[0].source},
        "joined_from": [passage.id for passage in passages],
        **({"chunks": [first, last]} if first is not None and last is not None else {}),
    }
    joined = _store_passage(aspect_set.query, NewPassage(passages[0].title, join_texts(passages), [aspect], metadata))
    decisions = [RevisionDecision(joined.pk, aspect, True)]
    decisions += [RevisionDecision(document.pk, aspect, False, f"joined into {joined}") for document in documents]
    names = ", ".join(passage.id for passage in passages)
    return aspect_set.revise(author, Act.JOIN, AspectChange(aspect_set.entries, decisions, f"{names} → {joined}"))


def as_passage(document: Document) -> AspectPassage:
    """Return the parts of a document that joining needs."""
    source = source_of(document.external_id, document.metadata)
    return AspectPassage(document.external_id, document.title, document.text, *source)


def cut_record(document: Document) -> dict[str, Any]:
    """Return the metadata of a portion of the document. Its source is a URL if there is one, otherwise the document."""
    source = document.metadata.get("source")
    # A source without a URL is only a name, so the document is the better source.
    has_address = isinstance(source, dict) and source.get("url")
    return {"source": source if has_address else {"document": document.external_id}, "cut_from": document.external_id}


def _store_passages(
    aspect_set: LockedAspectSet, passages: Sequence[NewPassage]
) -> tuple[list[Document], list[RevisionDecision]]:
    """Store passages; return their documents, and the decisions to keep them."""
    documents = [_store_passage(aspect_set.query, passage) for passage in passages]
    decisions = []
    for document, passage in zip(documents, passages, strict=True):
        _check_aspects(aspect_set, passage.aspects)
        decisions += [RevisionDecision(document.pk, name, True) for name in dict.fromkeys(passage.aspects)]
    return documents, decisions


def _check_aspects(aspect_set: LockedAspectSet, aspects: Sequence[str]) -> None:
    """Raise BadInput unless the query has aspects that include these."""
    aspect_ids = {entry.id for entry in aspect_set.entries}
    if not aspect_ids:
        raise BadInput(_("Decompose the query first. There are no aspects yet."))
    for name in aspects:
        if name not in aspect_ids:
            raise BadInput(_("Aspect %(id)s no longer exists. See the latest version.") % {"id": name})


def _store_passage(query: Query, passage: NewPassage) -> Document:
    """Create a document for a new text, or return the document that has the same text."""
    title, text = " ".join(passage.title.split()), passage.text.replace("\r\n", "\n").strip()
    if not text:
        raise BadInput(_("The passage is empty. Paste, upload or fetch a text."))
    if "\0" in text or "\0" in title:
        raise BadInput(_("The text contains a NUL character and is not plain text."))
    if len(text) > LONGEST:
        message = _(
            "The passage has %(length)d characters. Keep only what supports an aspect, at most %(most)d characters."
        )
        raise BadInput(message % {"length": len(text), "most": LONGEST})
    if not passage.aspects:
        raise BadInput(_("Choose the aspect that the passage supports."))
    # Named after its content, so that the same text is the same document, also for another query.
    digest = content_hash(title, text)
    name = f"passage-{digest[:16]}"
    document, is_new = Document.objects.get_or_create(
        collection_id=query.collection_id, external_id=name, is_current=True,
        defaults={"title": title, "text": text, "content_hash": digest, "metadata": dict(passage.metadata)},
    )  # fmt: skip
    # Only a new text must be indexed for the search.
    if is_new:
        full_text.request_index(query.collection_id)
    return document
