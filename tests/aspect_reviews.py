"""Aspects that Bob wrote and decided on, ready for a second person."""

from annotation.models import Membership
from annotation.work.aspects import review_steps, reviews
from annotation.work.aspects.review_steps import CRITERIA, Verdict
from corpus.aspects import documents, revising
from corpus.aspects.entries import Wording
from corpus.models import Document, Query
from corpus.models.aspects import AspectReview, AspectRevision

WHY = "Without it the answer is wrong."
ACCEPTED = {name: Verdict(True) for name in CRITERIA}


def decide_all(query: Query, bob: Membership) -> None:
    """Two aspects of importance 5 and 3; documents 0 and 1 under the first, 1 and 2 under the second, 3 discarded."""
    for text, importance in (("Ice flows under its own weight", 5), ("Heat melts the base", 3)):
        revising.add_aspect(query, bob.assessor, Wording(text, WHY, importance))
    for number, aspects in ((0, ["a1"]), (1, ["a1", "a2"]), (2, ["a2"])):
        documents.keep(query, bob.assessor, ice_document(number), aspects)
    documents.discard(query, bob.assessor, ice_document(3), "Off topic")


def ice_document(number: int) -> Document:
    return Document.objects.get(external_id=f"Ice_sheet_{number}")


def newest(query: Query) -> int:
    return AspectRevision.objects.filter(query=query).latest("number").number


def accept_all(member: Membership, weights: dict[str, int] | None = None) -> AspectReview:
    """Take the next query and accept everything; `weights` are the reviewer's own."""
    review = reviews.claim_review(member)
    own = weights or {one["id"]: one["importance"] for one in review.revision.aspects}
    review_steps.give_weights(review, member, own)
    review_steps.judge_aspects(review, member, ACCEPTED, {}, newest(review.query))
    said = {one.key: Verdict(True) for one in review_steps.decisions_under_review(review)}
    review_steps.judge_documents(review, member, said, newest(review.query))
    review.refresh_from_db()
    return review
