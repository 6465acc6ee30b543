"""Context of a review's page: the next step, or all answers of a finished review."""

from collections import defaultdict
from typing import Any

from django.db.models.functions import Left, Length
from django.http import QueryDict

from annotation.work.aspects.forms import typed_values
from annotation.work.aspects.review_steps import CRITERIA, decisions_under_review, next_kind
from annotation.work.aspects.reviews import Kind, State, current_steps
from annotation.work.aspects.second import shuffle_aspects
from annotation.work.aspects.workspace import SHOWN, AspectCard
from corpus.aspects.entries import ANCHORS, Entries, importance_weights, load_aspects
from corpus.aspects.revising import newest_revision
from corpus.models import Document
from corpus.models.aspects import AspectReview, ReviewStep

STEPS: tuple[str, ...] = (Kind.WEIGHTS, Kind.ASPECTS, Kind.DOCUMENTS)


def describe_review(review: AspectReview, post: QueryDict, *, mine: bool) -> dict[str, Any]:
    """Return the context of a review's page; the first weights are hidden until the reviewer has given theirs."""
    steps = current_steps(review)
    newest = newest_revision(review.query)
    step = next_kind(steps) if mine and review.state == State.OPEN else ""
    entries = load_aspects(newest.aspects) if newest else ()
    context: dict[str, Any] = {
        "review": review,
        "query": review.query,
        "step": step,
        "number": STEPS.index(step) + 1 if step else 0,
        "base": newest.number if newest else 0,
        "anchors": sorted(ANCHORS.items()),
        "typed": typed_values(post),
        "undoable": mine and any(kind in steps for kind in (Kind.ASPECTS, Kind.DOCUMENTS)),
        # A later change of the aspects makes the review outdated.
        "holds": newest is not None and review.final_id == newest.pk,
    }
    if step == Kind.WEIGHTS:
        # Without weights and in an order that does not reveal them; with the values of the form.
        blind = shuffle_aspects(load_aspects(review.revision.aspects), f"review {review.pk}")
        context["blind_entries"] = [(entry, _read_importance(post, entry.id, 0)) for entry in blind]
    elif step == Kind.ASPECTS:
        context["criteria"] = [
            {"key": key, "name": name, "chosen": post.get(f"v-{key}", ""), "reason": post.get(f"r-{key}", "")}
            for key, name in CRITERIA.items()
        ]
        # Each aspect with the importances of the first person, the reviewer and the form.
        first = {entry.id: entry.importance for entry in load_aspects(review.revision.aspects)}
        own = steps[Kind.WEIGHTS].answers["importances"]
        weights = importance_weights([entry.importance for entry in entries])
        context["weights"] = [
            {
                "entry": entry,
                "weight": weight,
                "first": first.get(entry.id),
                "own": own.get(entry.id),
                "chosen": _read_importance(post, entry.id, entry.importance),
            }
            for entry, weight in zip(entries, weights, strict=True)
        ]
    elif step == Kind.DOCUMENTS:
        context["cards"] = _show_documents(review, entries, post)
    elif not step:
        context |= _list_answers(review, steps)
    return context


def _read_importance(post: QueryDict, aspect: str, default: int) -> int:
    value = post.get(f"w-{aspect}", "")
    return int(value) if value in {"1", "2", "3", "4", "5"} else default


def _show_documents(review: AspectReview, entries: Entries, post: QueryDict) -> list[dict[str, Any]]:
    """Return a card for each decision of the first person, with the document's text."""
    decisions = decisions_under_review(review)
    # Only the beginning of each text is loaded, because documents may be long and many.
    rows = Document.objects.filter(pk__in={decision.document for decision in decisions}).defer("text")
    documents = {row.pk: row for row in rows.annotate(shown=Left("text", SHOWN), length=Length("text"))}
    texts = {entry.id: entry.text for entry in load_aspects(review.revision.aspects)}
    cards = []
    for decision in decisions:
        document: Any = documents[decision.document]
        card = AspectCard(document, document.shown, max(0, document.length - SHOWN), frozenset(), decision.reason)
        cards.append({
            "decision": decision,
            "card": card,
            "aspect": texts.get(decision.aspect, decision.aspect),
            "others": [entry for entry in entries if entry.id != decision.aspect],
            "chosen": post.get(f"v-{decision.key}", ""),
            "reason": post.get(f"r-{decision.key}", ""),
            "ticked": post.getlist(f"a-{decision.key}"),
        })  # fmt: skip
    return cards


def _list_answers(review: AspectReview, steps: dict[str, ReviewStep]) -> dict[str, Any]:
    """Return the reviewer's answers in each step, and the history of the steps."""
    texts = {entry.id: entry for entry in load_aspects(review.revision.aspects)}
    answers: dict[str, Any] = defaultdict(list)
    if weights := steps.get(Kind.WEIGHTS):
        own = weights.answers["importances"]
        answers["weights"] = [(entry, own.get(name)) for name, entry in texts.items()]
    if aspects := steps.get(Kind.ASPECTS):
        answers["criteria"] = [(CRITERIA[name], verdict) for name, verdict in aspects.answers["criteria"].items()]
    if documents := steps.get(Kind.DOCUMENTS):
        answers["documents"] = [
            {**decision, "text": texts[decision["aspect"]].text if decision["aspect"] in texts else ""}
            for decision in documents.answers["decisions"]
        ]
    history = ReviewStep.objects.filter(review=review).select_related("undoes").order_by("pk")
    return {"said": dict(answers), "history": list(history)}
