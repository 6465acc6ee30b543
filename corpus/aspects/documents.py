"""Documents under aspects: kept, discarded with a reason, put back to review; new passages, joined ones, cut ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from corpus.aspects.passages import AspectPassage, find_gaps, in_order, join_texts, source_of
from corpus.aspects.revising import Act, AspectChange, Held, RevisionDecision, lock_aspects
from corpus.errors import BadInput
from corpus.importing.table_records import content_hash
from corpus.models import Assessor, Document, Query
from corpus.models.aspects import AspectRevision
from corpus.search import full_text

LONGEST = 200_000  # Characters of a passage: more is a book.
LONGEST_REASON = 1_000


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A text that becomes a document under one or more aspects. `metadata["source"]` says where it comes from."""

    title: str
    text: str
    aspects: Sequence[str]
    metadata: Mapping[str, Any]


@transaction.atomic
def keep(query: Query, author: Assessor, document: Document, aspects: Sequence[str]) -> AspectRevision:
    """Keep the document under these aspects of the query and under no other. A discard before holds no longer."""
    held = lock_aspects(query)
    # A form may name an aspect twice.
    chosen = list(dict.fromkeys(aspects))
    _must_hold(held, chosen)
    if not chosen:
        raise BadInput(_("Choose the aspects that the document supports, or discard it with a reason."))
    # Under the others nobody says so any more: an aspect that was unticked is not a refusal with a reason.
    others = [entry.id for entry in held.entries if entry.id not in chosen]
    decisions = [RevisionDecision(document.pk, name, True) for name in chosen]
    decisions += [RevisionDecision(document.pk, name, None) for name in others]
    return held.revise(author, Act.KEEP, AspectChange(held.entries, decisions, f"{document} → {', '.join(chosen)}"))


@transaction.atomic
def discard(query: Query, author: Assessor, document: Document, reason: str) -> AspectRevision:
    """Record that the document supports none of the aspects, with the reason."""
    reason = " ".join(reason.split())[:LONGEST_REASON]
    if not reason:
        raise BadInput(_("Say why the document supports no aspect."))
    held = lock_aspects(query)
    _must_hold(held, [])
    # Under every aspect: a later aspect is a new question, and the document is open for it.
    decisions = [RevisionDecision(document.pk, entry.id, False, reason) for entry in held.entries]
    return held.revise(author, Act.DISCARD, AspectChange(held.entries, decisions, f"{document}: {reason}"))


@transaction.atomic
def reopen(query: Query, author: Assessor, document: Document) -> AspectRevision:
    """Reopen a document for all aspects: it counts neither as support nor as discarded."""
    held = lock_aspects(query)
    standing = held.current_judgments([entry.id for entry in held.entries])
    said = [name for (pk, name), judgment in standing.items() if pk == document.pk and judgment.grade is not None]
    decisions = [RevisionDecision(document.pk, name, None) for name in said]
    return held.revise(author, Act.REOPEN, AspectChange(held.entries, decisions, str(document)))


@transaction.atomic
def add_passages(query: Query, author: Assessor, new: Sequence[NewPassage]) -> AspectRevision:
    """Make new documents under aspects. The same text again is the same document."""
    held = lock_aspects(query)
    if not new:
        raise BadInput(_("Assign at least one sentence to an aspect."))
    documents, decisions = _keep_passages(held, new)
    return held.revise(author, Act.PASSAGE, AspectChange(held.entries, decisions, ", ".join(map(str, documents))))


@transaction.atomic
def cut(query: Query, author: Assessor, document: Document, parts: Sequence[NewPassage]) -> AspectRevision:
    """Make portions of a document documents; the whole supports no aspect any more."""
    held = lock_aspects(query)
    if not parts:
        raise BadInput(_("Assign at least one sentence to an aspect."))
    # One part that is the whole changes nothing but its name.
    if len(parts) == 1 and parts[0].text.strip() == document.text.strip():
        raise BadInput(_("This is the whole text under one aspect. Keep the document under that aspect instead."))
    documents, decisions = _keep_passages(held, parts)
    names = ", ".join(map(str, documents))
    # The whole is refused with the names of its parts, so that a reader finds them.
    decisions += [RevisionDecision(document.pk, entry.id, False, f"cut into {names}") for entry in held.entries]
    return held.revise(author, Act.CUT, AspectChange(held.entries, decisions, f"{document} → {names}"))


@transaction.atomic
def join(query: Query, author: Assessor, documents: Sequence[Document], aspect: str) -> AspectRevision:
    """Make one document of contiguous passages of one source that are kept under the aspect."""
    held = lock_aspects(query)
    # By their chunks and not as they were ticked: the joined text must read on.
    passages = in_order([as_passage(document) for document in documents])
    if len(passages) < 2:
        raise BadInput(_("Choose two or more passages to join."))
    sources = sorted({passage.source for passage in passages})
    if len(sources) > 1:
        said = _("Only passages from the same source can be joined. These come from %(names)s.")
        raise BadInput(said % {"names": ", ".join(sources)})
    for one, other in find_gaps(passages):
        said = _("Only adjacent passages can be joined. There is text missing between %(one)s and %(other)s.")
        raise BadInput(said % {"one": one, "other": other})
    standing = held.current_judgments([aspect])
    # Joining is for what was judged to be support: it must not bring in a text that nobody kept.
    if not all((found := standing.get((document.pk, aspect))) and found.grade for document in documents):
        raise BadInput(_("Keep all of these passages under the aspect before you join them."))
    first, last = passages[0].first, passages[-1].last
    # What the whole says of its source is what the first of its passages says.
    opening = next(one for one in documents if one.external_id == passages[0].id)
    given = opening.metadata.get("source")
    metadata = {
        "source": dict(given) if isinstance(given, dict) else {"document": passages[0].source},
        "joined_from": [passage.id for passage in passages],
        **({"chunks": [first, last]} if first is not None and last is not None else {}),
    }
    whole = _store_passage(held.query, NewPassage(passages[0].title, join_texts(passages), [aspect], metadata))
    decisions = [RevisionDecision(whole.pk, aspect, True)]
    decisions += [RevisionDecision(one.pk, aspect, False, f"joined into {whole}") for one in documents]
    names = ", ".join(passage.id for passage in passages)
    return held.revise(author, Act.JOIN, AspectChange(held.entries, decisions, f"{names} → {whole}"))


def as_passage(document: Document) -> AspectPassage:
    """Return the document as far as joining needs it."""
    source = source_of(document.external_id, document.metadata)
    return AspectPassage(document.external_id, document.title, document.text, *source)


def cut_record(document: Document) -> dict[str, Any]:
    """Return the metadata of a portion of the document. Its source is an address if there is one, else the document."""
    given = document.metadata.get("source")
    # A source without an address is only a name; the document that it was cut from is the better one.
    named = isinstance(given, dict) and given.get("url")
    return {"source": given if named else {"document": document.external_id}, "cut_from": document.external_id}


def _keep_passages(held: Held, passages: Sequence[NewPassage]) -> tuple[list[Document], list[RevisionDecision]]:
    """Store passages; return their documents, and the decisions that keep them."""
    documents = [_store_passage(held.query, passage) for passage in passages]
    decisions = []
    for document, passage in zip(documents, passages, strict=True):
        _must_hold(held, passage.aspects)
        decisions += [RevisionDecision(document.pk, name, True) for name in dict.fromkeys(passage.aspects)]
    return documents, decisions


def _must_hold(held: Held, aspects: Sequence[str]) -> None:
    """Raise BadInput unless the query has aspects, these among them."""
    known = {entry.id for entry in held.entries}
    if not known:
        raise BadInput(_("Decompose the query first. There are no aspects yet."))
    for name in aspects:
        if name not in known:
            raise BadInput(_("Aspect %(id)s no longer exists. See the latest version.") % {"id": name})


def _store_passage(query: Query, passage: NewPassage) -> Document:
    """Make a document for a new text, or return the one that holds the same text already."""
    title, text = " ".join(passage.title.split()), passage.text.replace("\r\n", "\n").strip()
    if not text:
        raise BadInput(_("The passage is empty. Paste, upload or fetch a text."))
    if "\0" in text or "\0" in title:
        raise BadInput(_("The text contains a NUL character and is not plain text."))
    if len(text) > LONGEST:
        said = _(
            "The passage has %(length)d characters. Keep only what supports an aspect, at most %(most)d characters."
        )
        raise BadInput(said % {"length": len(text), "most": LONGEST})
    if not passage.aspects:
        raise BadInput(_("Choose the aspect that the passage supports."))
    # Named after its content: whoever brings the same text finds the same document, also from another query.
    digest = content_hash(title, text)
    name = f"passage-{digest[:16]}"
    found, made = Document.objects.get_or_create(
        collection_id=query.collection_id, external_id=name, is_current=True,
        defaults={"title": title, "text": text, "content_hash": digest, "metadata": dict(passage.metadata)},
    )  # fmt: skip
    # Only a text that is new needs to be found by the search.
    if made:
        full_text.request_index(query.collection_id)
    return found
