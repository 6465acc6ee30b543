"""Context of a query's workspace: its aspects with weights, and its open, kept and discarded documents."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Left, Length

from annotation.models.aspects import PassageDraft
from annotation.work.aspects.drafts import PENDING, State, is_silent
from corpus.aspects.documents import as_passage
from corpus.aspects.entries import AspectSnapshot, importance_weights, load_aspects
from corpus.aspects.passages import joinable_groups
from corpus.aspects.revising import earlier_revision, newest_revision, undoable_revision
from corpus.models import Assessor, CurrentJudgment, Document, Judgment, Label, Pair, Query
from corpus.models.aspects import Aspect, AspectRevision

SHOWN = 3_000  # The most characters of a document on its card.
MOST = 100  # The most documents on the page.
HISTORY = 50  # The most revisions on the page.
KEYS = 9  # The most aspects with a digit as key.


@dataclass(frozen=True, slots=True)
class AspectCard:
    """A document of the query: open, kept under aspects, or discarded with a reason."""

    document: Document
    text: str
    more: int  # The number of characters that are not shown.
    aspects: frozenset[str]
    reason: str  # Why the document was discarded; "" where it was not.

    @property
    def state(self) -> str:
        """Return the document's state for this query: open, kept or discarded."""
        return "kept" if self.aspects else "discarded" if self.reason else "open"

    @property
    def source(self) -> str:
        """Return the address of the document's source; "" where there is none to open."""
        details = self.document.metadata.get("source")
        url = details.get("url") if isinstance(details, dict) else self.document.metadata.get("url")
        return url if isinstance(url, str) and url.startswith(("http://", "https://")) else ""


def load_workspace(query: Query) -> dict[str, Any]:
    """Return the context of a query's workspace, in a fixed number of statements."""
    newest = newest_revision(query)
    if newest:
        entries = load_aspects(newest.aspects)
    else:
        rows = list_aspects(query)
        entries = tuple(AspectSnapshot(row.external_id, row.text, row.rationale, row.importance) for row in rows)
    cards = _load_cards(query)
    others = Query.objects.filter(collection_id=query.collection_id, is_current=True)
    is_undone = Exists(AspectRevision.objects.filter(undoes=OuterRef("pk")))
    history = AspectRevision.objects.filter(query=query).select_related("author").annotate(taken_back=is_undone)
    # The aspects with weights, keys, cards, and groups of passages that can be joined.
    by_weight = importance_weights([entry.importance for entry in entries])
    shown = []
    for number, (entry, weight) in enumerate(zip(entries, by_weight, strict=True), 1):
        own_cards = [card for card in cards if entry.id in card.aspects]
        key = str(number) if number <= KEYS else ""
        # Only the numbers of chunks are compared, because whole texts are not loaded; joining checks them again.
        for card in own_cards:
            card.document.text = card.text
        by_id = {card.document.external_id: card.document for card in own_cards}
        groups = joinable_groups([as_passage(document) for document in by_id.values()])
        joinable = [[by_id[passage.id] for passage in group] for group in groups]
        shown.append({"entry": entry, "weight": weight, "key": key, "cards": own_cards, "joinable": joinable})
    return {
        "number": newest.number if newest else 0,
        "aspects": shown,
        "to_review": [card for card in cards if card.state == "open"],
        "discarded": [card for card in cards if card.state == "discarded"],
        "kept": sum(card.state == "kept" for card in cards),
        # The number of shown documents where there may be more; else 0.
        "cut_off": MOST if len(cards) >= MOST else 0,
        "incoming": incoming_of(query),
        "history": list(history.order_by("-number")[:HISTORY]),
        "undoable": undoable_revision(query),
        "before": others.filter(pk__lt=query.pk).order_by("-pk").values_list("pk", flat=True).first(),
        "after": others.filter(pk__gt=query.pk).order_by("pk").values_list("pk", flat=True).first(),
        # The aspects of an earlier text of the query, where the current text has none.
        "earlier": None if entries else earlier_revision(query),
    }


def list_aspects(query: Query) -> list[Aspect]:
    """Return the current aspects of a query in their order."""
    return list(Aspect.objects.filter(query=query, is_current=True).order_by("place", "pk"))


def incoming_of(query: Query) -> list[dict[str, Any]]:
    """Return the query's passage drafts, newest first; `pending` marks those that a worker is still fetching."""
    incoming = []
    states = [*PENDING, State.READY, State.FAILED]
    for draft in PassageDraft.objects.filter(query=query, state__in=states).order_by("-pk"):
        silent = is_silent(draft)
        incoming.append({"draft": draft, "silent": silent, "pending": draft.state in PENDING and not silent})
    return incoming


def reviewable_pairs(query: Q, relevant_from: int) -> QuerySet[Pair]:
    """Return the pairs to review: relevant by label or reference grade, or judged under an aspect (BRIGHT-Pro 3.3)."""
    labels = Label.objects.filter(pair=OuterRef("pk"), aspect=None, grade__gte=relevant_from)
    reference = CurrentJudgment.objects.filter(
        pair=OuterRef("pk"), aspect=None, grade__gte=relevant_from, assessor__kind=Assessor.Kind.REFERENCE
    )
    by_aspect = Judgment.objects.filter(pair=OuterRef("pk"), aspect__isnull=False)
    return Pair.objects.filter(query, Exists(labels) | Exists(reference) | Exists(by_aspect), document__is_current=True)


def _load_cards(query: Query) -> list[AspectCard]:
    """Return the cards of the query's documents that `reviewable_pairs` selects."""
    aspects_of_pair: dict[int, set[str]] = {}
    reasons: dict[int, str] = {}
    current = CurrentJudgment.objects.filter(aspect__query=query, aspect__is_current=True)
    for pair, aspect, grade, comment in current.values_list("pair", "aspect__external_id", "grade", "comment"):
        if grade:
            aspects_of_pair.setdefault(pair, set()).add(aspect)
        else:
            reasons[pair] = comment or "·"
    rows = list(
        reviewable_pairs(Q(query=query), query.collection.relevant_from)
        .annotate(said=Exists(current.filter(pair=OuterRef("pk"))))
        .annotate(shown=Left("document__text", SHOWN), length=Length("document__text"))
        .values_list("pk", "document", "shown", "length")
        # Open documents come first, so that the limit never cuts them off.
        .order_by("said", "document__external_id")[:MOST]
    )
    documents = Document.objects.defer("text").in_bulk([row[1] for row in rows])
    return [
        AspectCard(
            documents[document],
            shown,
            max(0, length - SHOWN),
            frozenset(aspects_of_pair.get(pk, ())),
            reasons.get(pk, ""),
        )
        for pk, document, shown, length in rows
    ]
