"""The list of queries in the aspects workspace, with their progress: filters, and pages that begin at an id."""

from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, Count, Exists, ExpressionWrapper, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left

from annotation.work.aspects.workspace import reviewable_pairs
from corpus.models import Collection, CurrentJudgment, Label, Pair, Query
from corpus.models.aspects import Aspect, AspectReview, AspectRevision

PAGE_SIZE = 50
MAX_LISTED_CHARACTERS = 300
# The states by which queries can be filtered: without aspects, with documents to review, and without such documents.
STATES = ("none", "review", "done")


@dataclass(frozen=True, slots=True)
class ListedQuery:
    """A query in the list."""

    id: int  # Primary key.
    external_id: str  # Id in the collection.
    text: str  # The beginning of the query.
    aspect_count: int
    supporting_document_count: int  # Documents that support an aspect.
    unreviewed_document_count: int  # Documents that have yet to be reviewed.
    is_review_current: bool | None  # Whether a submitted review is of the newest aspects; None without a review.


@dataclass(frozen=True, slots=True)
class QueryPage:
    """A page of the list."""

    queries: list[ListedQuery]
    before: int | None  # The id before which the previous page ends; None on the first page.
    after: int | None  # The id after which the next page begins; None on the last page.


@dataclass(frozen=True, slots=True)
class AspectTotals:
    """Counts of a collection."""

    queries: int
    decomposed_queries: int  # Queries with aspects.
    aspects: int


def list_queries(
    collection: Collection, *, search: str = "", state: str = "", after: int = 0, before: int = 0
) -> QueryPage:
    """Return a page of the queries in the order of their import.

    The page contains queries whose id begins with `search` or whose text contains it, and that are in `state`, one of
    STATES; an empty text sets no condition. The page begins after the primary key `after`, or if `before` is not 0, it
    ends before that key.
    """
    queries = Query.objects.filter(collection=collection, is_current=True)
    if search:
        queries = queries.filter(Q(external_id__startswith=search) | Q(text__icontains=search))
    has_aspects = Exists(Aspect.objects.filter(query=OuterRef("pk"), is_current=True))
    has_unreviewed_pairs = Exists(unreviewed_pairs(Q(query=OuterRef("pk")), collection))
    if state == "none":
        queries = queries.filter(~has_aspects)
    elif state == "review":
        queries = queries.filter(has_aspects & has_unreviewed_pairs)
    elif state == "done":
        queries = queries.filter(has_aspects & ~has_unreviewed_pairs)
    queries = queries.filter(pk__lt=before).order_by("-pk") if before else queries.filter(pk__gt=after).order_by("pk")
    # One id more than a page has, which tells whether there are further queries in this direction.
    ids = list(queries.values_list("pk", flat=True)[: PAGE_SIZE + 1])
    has_further = len(ids) > PAGE_SIZE
    page_ids = sorted(ids[:PAGE_SIZE])
    has_previous_page = has_further if before else after > 0
    has_next_page = before > 0 or has_further
    return QueryPage(
        queries=_load_queries(collection, page_ids),
        before=page_ids[0] if page_ids and has_previous_page else None,
        after=page_ids[-1] if page_ids and has_next_page else None,
    )


def count_totals(collection: Collection) -> AspectTotals:
    """Count the queries of a collection and their aspects."""
    queries = Query.objects.filter(collection=collection, is_current=True)
    aspects = Aspect.objects.filter(query__in=queries, is_current=True)
    counts = aspects.aggregate(decomposed_queries=Count("query", distinct=True), aspects=Count("pk"))
    return AspectTotals(queries=queries.count(), **counts)


def unreviewed_pairs(query: Q, collection: Collection) -> QuerySet[Pair]:
    """Return the pairs to review that have no judgment under a current aspect. `query` is a condition on pairs."""
    judgments = CurrentJudgment.objects.filter(pair=OuterRef("pk"), aspect__is_current=True)
    return reviewable_pairs(query, collection.relevant_from).exclude(Exists(judgments))


def _load_queries(collection: Collection, ids: list[int]) -> list[ListedQuery]:
    """Return the queries with these primary keys, in the order of the keys."""
    supporting_labels = Label.objects.filter(
        pair=OuterRef("pk"), aspect__is_current=True, grade__gte=collection.relevant_from
    )
    supporting_pairs = Pair.objects.filter(Exists(supporting_labels), query__in=ids, document__is_current=True)
    aspect_counts = _count_by_query(Aspect.objects.filter(query__in=ids, is_current=True))
    supporting_counts = _count_by_query(supporting_pairs)
    unreviewed_counts = _count_by_query(unreviewed_pairs(Q(query__in=ids), collection))
    # For each reviewed query, whether its last submitted review is of the newest revision of the aspects.
    newest_revision = AspectRevision.objects.filter(query=OuterRef("query")).order_by("-number").values("pk")[:1]
    is_of_newest = ExpressionWrapper(Q(final=Subquery(newest_revision)), BooleanField())
    submitted = AspectReview.objects.filter(query__in=ids, state=AspectReview.State.SUBMITTED).order_by("pk")
    # Later reviews of a query replace earlier ones.
    reviews = dict(submitted.annotate(is_of_newest=is_of_newest).values_list("query", "is_of_newest"))
    queries = Query.objects.filter(pk__in=ids).annotate(beginning=Left("text", MAX_LISTED_CHARACTERS)).order_by("pk")
    return [
        ListedQuery(
            id=pk,
            external_id=external_id,
            text=beginning,
            aspect_count=aspect_counts.get(pk, 0),
            supporting_document_count=supporting_counts.get(pk, 0),
            unreviewed_document_count=unreviewed_counts.get(pk, 0),
            is_review_current=reviews.get(pk),
        )
        for pk, external_id, beginning in queries.values_list("pk", "external_id", "beginning")
    ]


def _count_by_query(rows: QuerySet[Any]) -> dict[int, int]:
    """Return the number of rows of each query that has any, by the primary key of the query."""
    return dict(rows.order_by().values_list("query").annotate(Count("pk")))
