"""Context of one review's page: the step that comes next, or all answers of a finished review."""

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
    """Return the context of a review's page; first weights are hidden until the reviewer's own."""
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
        # A later change of the aspects makes a review outdated.
        "holds": newest is not None and review.final_id == newest.pk,
    }
    if step == Kind.WEIGHTS:
        # Without weights, in an order that says nothing of them; with what the form had.
        blind = shuffle_aspects(load_aspects(review.revision.aspects), f"review {review.pk}")
        context["blind_entries"] = [(entry, _read_chosen(post, entry.id, 0)) for entry in blind]
    elif step == Kind.ASPECTS:
        context["criteria"] = [
            {"key": key, "name": name, "chosen": post.get(f"v-{key}", ""), "reason": post.get(f"r-{key}", "")}
            for key, name in CRITERIA.items()
        ]
        context["weights"] = _show_weights(review, steps, entries, post)
    elif step == Kind.DOCUMENTS:
        context["cards"] = _show_documents(review, entries, post)
    elif not step:
        context |= _list_answers(review, steps)
    return context


def _read_chosen(post: QueryDict, aspect: str, otherwise: int) -> int:
    given = post.get(f"w-{aspect}", "")
    return int(given) if given in {"1", "2", "3", "4", "5"} else otherwise


def _show_weights(
    review: AspectReview, steps: dict[str, ReviewStep], entries: Entries, post: QueryDict
) -> list[dict[str, Any]]:
    """Each aspect with the first person's importance, the reviewer's, and the form's."""
    first = {entry.id: entry.importance for entry in load_aspects(review.revision.aspects)}
    own = steps[Kind.WEIGHTS].answers["importances"]
    weights = importance_weights([entry.importance for entry in entries])
    return [
        {
            "entry": entry,
            "weight": weight,
            "first": first.get(entry.id),
            "own": own.get(entry.id),
            "chosen": _read_chosen(post, entry.id, entry.importance),
        }
        for entry, weight in zip(entries, weights, strict=True)
    ]


def _show_documents(review: AspectReview, entries: Entries, post: QueryDict) -> list[dict[str, Any]]:
    """A card for each decision of the first person, with the document's text."""
    decisions = decisions_under_review(review)
    # Only the beginning of each text leaves the database: documents may be long and many.
    rows = Document.objects.filter(pk__in={one.document for one in decisions}).defer("text")
    documents = {row.pk: row for row in rows.annotate(shown=Left("text", SHOWN), length=Length("text"))}
    texts = {entry.id: entry.text for entry in load_aspects(review.revision.aspects)}
    found = []
    for one in decisions:
        document: Any = documents[one.document]
        card = AspectCard(document, document.shown, max(0, document.length - SHOWN), frozenset(), one.reason)
        found.append({
            "decision": one,
            "card": card,
            "aspect": texts.get(one.aspect, one.aspect),
            "others": [entry for entry in entries if entry.id != one.aspect],
            "chosen": post.get(f"v-{one.key}", ""),
            "reason": post.get(f"r-{one.key}", ""),
            "ticked": post.getlist(f"a-{one.key}"),
        })  # fmt: skip
    return found


def _list_answers(review: AspectReview, steps: dict[str, ReviewStep]) -> dict[str, Any]:
    """Return the reviewer's answers in each step, and the history of the steps with their times."""
    texts = {entry.id: entry for entry in load_aspects(review.revision.aspects)}
    said: dict[str, Any] = defaultdict(list)
    if weights := steps.get(Kind.WEIGHTS):
        own = weights.answers["importances"]
        said["weights"] = [(entry, own.get(name)) for name, entry in texts.items()]
    if aspects := steps.get(Kind.ASPECTS):
        said["criteria"] = [(CRITERIA[name], one) for name, one in aspects.answers["criteria"].items()]
    if documents := steps.get(Kind.DOCUMENTS):
        said["documents"] = [
            {**one, "text": texts[one["aspect"]].text if one["aspect"] in texts else ""}
            for one in documents.answers["decisions"]
        ]
    history = ReviewStep.objects.filter(review=review).select_related("undoes").order_by("pk")
    return {"said": dict(said), "history": list(history)}
