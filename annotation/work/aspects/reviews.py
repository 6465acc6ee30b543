"""A second person's review of every decomposed query (BRIGHT-Pro app. B): who may review which query, and for how long.

A query is leased to one person for LEASE from their last step. People who worked on a query never
review it; nor do those who changed it after a review, which made that review outdated.
"""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Case, CharField, Count, Exists, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import Membership
from annotation.work.aspects.listing import unreviewed_pairs
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Collection, CurrentJudgment, Query
from corpus.models.aspects import Aspect, AspectReview, AspectRevision, ReviewStep

LEASE = timedelta(hours=1)
TRIED = 20  # The most queries that a claim tries, because others may be claiming them at this moment.
State = AspectReview.State
Kind = ReviewStep.Kind
# The states of a query, in their order on the page.
STATES = ("reviewed", "outdated", "open", "ready", "undecided")


def decomposed_queries(collection: Collection) -> QuerySet[Any]:
    """Return the queries with aspects, annotated with `review_state`, one of STATES."""
    newest = AspectRevision.objects.filter(query=OuterRef("pk")).order_by("-number").values("pk")[:1]
    reviews = AspectReview.objects.filter(query=OuterRef("pk"))
    submitted = reviews.filter(state=State.SUBMITTED)
    return (
        Query.objects.filter(collection=collection, is_current=True)
        .filter(Exists(Aspect.objects.filter(query=OuterRef("pk"), is_current=True)))
        .annotate(newest_revision=Subquery(newest))
        .filter(newest_revision__isnull=False)
        .annotate(
            review_state=Case(
                When(Exists(submitted.filter(final=OuterRef("newest_revision"))), then=Value("reviewed")),
                When(Exists(reviews.filter(state=State.OPEN, leased_until__gt=timezone.now())), then=Value("open")),
                When(Exists(unreviewed_pairs(Q(query=OuterRef("pk")), collection)), then=Value("undecided")),
                When(Exists(submitted), then=Value("outdated")),
                default=Value("ready"),
                output_field=CharField(),
            )
        )
    )


def count_states(collection: Collection) -> dict[str, int]:
    """Count the decomposed queries by state, and `all`."""
    rows = decomposed_queries(collection).order_by().values_list("review_state").annotate(Count("pk"))
    counts = dict.fromkeys(STATES, 0) | dict(rows)
    return {**counts, "all": sum(counts.values())}


def count_reviewed(collection: Collection) -> int:
    """Count the queries whose newest aspects a second person reviewed."""
    newest = AspectRevision.objects.filter(query=OuterRef("query")).order_by("-number").values("pk")[:1]
    submitted = AspectReview.objects.filter(query__collection=collection, query__is_current=True, state=State.SUBMITTED)
    return submitted.filter(final=Subquery(newest)).values("query").distinct().count()


def reviewable_queries(member: Membership) -> QuerySet[Any]:
    """Return the queries that the member may review now, in the order of their import."""
    last_review = AspectReview.objects.filter(query=OuterRef("query"), state=State.SUBMITTED).order_by("-pk")
    # Revisions by the member since the last review, or all where there was none.
    own = AspectRevision.objects.filter(
        query=OuterRef("pk"),
        author=member.assessor,
        number__gt=Coalesce(Subquery(last_review.values("final__number")[:1]), Value(0)),
    )
    available = decomposed_queries(member.collection).filter(review_state__in=["ready", "outdated"])
    return available.exclude(Exists(own)).order_by("pk")


def open_review(member: Membership) -> AspectReview | None:
    """Return the member's open review; None where there is none."""
    open_reviews = AspectReview.objects.filter(reviewer=member.assessor, state=State.OPEN, query__is_current=True)
    return open_reviews.select_related("query").first()


@transaction.atomic
def claim_review(member: Membership) -> AspectReview:
    """Return the member's open review, renewed, or claim the next query. Raises BadInput where no query is left.

    1. Renew the review that the member has open.
    2. Else lock a query that the member may review; skip those that others are claiming at this moment.
    3. Expire an abandoned review of the query, and start one of its newest aspects and current judgments.
    """
    # Locks the membership, so that two presses at the same moment claim one review.
    hold(Membership.objects, member.pk, no_key=True)
    if own := open_review(member):
        AspectReview.objects.filter(pk=own.pk, state=State.OPEN).update(leased_until=timezone.now() + LEASE)
        return own
    for pk in list(reviewable_queries(member).values_list("pk", flat=True)[:TRIED]):
        query = Query.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=pk).first()
        # Checked again, now that nobody else can claim it.
        if query and reviewable_queries(member).filter(pk=pk).exists():
            break
    else:
        raise BadInput(_("No query is waiting for your review. Queries that you worked on go to another person."))
    AspectReview.objects.filter(query=query, state=State.OPEN).update(state=State.EXPIRED)
    own_revisions = AspectRevision.objects.filter(query=query, author=member.assessor)
    own_steps = ReviewStep.objects.filter(review__query=query, review__reviewer=member.assessor)
    judgments = CurrentJudgment.objects.filter(
        aspect__query=query, aspect__is_current=True, pair__document__is_current=True
    )
    review = AspectReview.objects.create(
        query=query,
        revision=AspectRevision.objects.filter(query=query).latest("number"),
        judgments=list(judgments.order_by("pk").values_list("pk", flat=True)),
        reviewer=member.assessor,
        blind=not (own_revisions.exists() or own_steps.exists()),
        leased_until=timezone.now() + LEASE,
    )
    record(member.user, "aspects.reviewed", member.collection, query=query.external_id, did="claim")
    return review


@transaction.atomic
def release_review(member: Membership, review: AspectReview) -> None:
    """Release a member's review so that another person can do it; its steps stay in the history."""
    if AspectReview.objects.filter(pk=review.pk, state=State.OPEN).update(state=State.RELEASED):
        record(member.user, "aspects.reviewed", member.collection, query=review.query.external_id, did="release")


def current_steps(review: AspectReview) -> dict[str, ReviewStep]:
    """Return the steps that were not undone by kind, in their order."""
    steps = ReviewStep.objects.filter(review=review, undone_by=None).exclude(kind=Kind.UNDO).select_related("revision")
    return {step.kind: step for step in steps.order_by("pk")}


def list_reviews(collection: Collection, most: int = 50) -> list[dict[str, Any]]:
    """Return the newest reviews, and whether each is of the query's newest aspects."""
    newest = AspectRevision.objects.filter(query=OuterRef("query")).order_by("-number").values("pk")[:1]
    reviews = AspectReview.objects.filter(query__collection=collection).exclude(state=State.EXPIRED)
    rows = reviews.select_related("query", "reviewer").annotate(newest_revision=Subquery(newest)).order_by("-pk")[:most]
    return [{"review": row, "holds": row.final_id == row.newest_revision} for row in rows]
