"""The list of queries with their progress in the aspects workspace: filters in the URL, pages by id."""

from typing import Any

from django.db.models import BooleanField, Count, Exists, ExpressionWrapper, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left

from annotation.work.aspects.workspace import reviewable_pairs
from corpus.models import Collection, CurrentJudgment, Label, Pair, Query
from corpus.models.aspects import Aspect, AspectReview, AspectRevision

PAGE = 50
STATES = ("none", "review", "done")


def list_queries(
    collection: Collection, *, q: str = "", state: str = "", after: int = 0, before: int = 0
) -> dict[str, Any]:
    """Return a page of the queries in the order of their import; `q` searches ids and texts."""
    queries = Query.objects.filter(collection=collection, is_current=True)
    if q:
        queries = queries.filter(Q(external_id__startswith=q) | Q(text__icontains=q))
    has_aspects = Exists(Aspect.objects.filter(query=OuterRef("pk"), is_current=True))
    has_open_pairs = Exists(unreviewed_pairs(Q(query=OuterRef("pk")), collection))
    queries = queries.filter(
        {"none": ~has_aspects, "review": has_aspects & has_open_pairs, "done": has_aspects & ~has_open_pairs}.get(
            state, Q()
        )
    )
    # One more than a page, which tells whether there are others.
    queries = queries.filter(pk__lt=before).order_by("-pk") if before else queries.filter(pk__gt=after).order_by("pk")
    ids = list(queries.values_list("pk", flat=True)[: PAGE + 1])
    has_more = len(ids) > PAGE
    has_before, has_after = (has_more, True) if before else (bool(after), has_more)
    ids = sorted(ids[:PAGE])
    labels = Label.objects.filter(pair=OuterRef("pk"), aspect__is_current=True, grade__gte=collection.relevant_from)
    counted_rows: dict[str, QuerySet[Any]] = {
        "aspects": Aspect.objects.filter(query__in=ids, is_current=True),
        "kept": Pair.objects.filter(Exists(labels), query__in=ids, document__is_current=True),
        "to_review": unreviewed_pairs(Q(query__in=ids), collection),
    }
    counts = {
        name: dict(rows.order_by().values_list("query").annotate(Count("pk"))) for name, rows in counted_rows.items()
    }
    page = Query.objects.filter(pk__in=ids).annotate(begin=Left("text", 300)).order_by("pk")
    newest = AspectRevision.objects.filter(query=OuterRef("query")).order_by("-number").values("pk")[:1]
    submitted = AspectReview.objects.filter(query__in=ids, state=AspectReview.State.SUBMITTED).order_by("pk")
    reviewed = dict(
        submitted.annotate(holds=ExpressionWrapper(Q(final=Subquery(newest)), BooleanField())).values_list(
            "query", "holds"
        )
    )
    lines = [
        {"id": pk, "external_id": external_id, "text": begin, "reviewed": reviewed.get(pk)}
        | {name: by_query.get(pk, 0) for name, by_query in counts.items()}
        for pk, external_id, begin in page.values_list("pk", "external_id", "begin")
    ]
    return {
        "lines": lines,
        "before": ids[0] if ids and has_before else None,
        "after": ids[-1] if ids and has_after else None,
    }


def unreviewed_pairs(query: Q, collection: Collection) -> QuerySet[Pair]:
    """Return the pairs to review that have no judgment under a current aspect."""
    judgments = CurrentJudgment.objects.filter(pair=OuterRef("pk"), aspect__is_current=True)
    return reviewable_pairs(query, collection.relevant_from).exclude(Exists(judgments))


def count_totals(collection: Collection) -> dict[str, int]:
    """Count the queries, those that are decomposed, and their aspects."""
    queries = Query.objects.filter(collection=collection, is_current=True)
    aspects = Aspect.objects.filter(query__in=queries, is_current=True)
    totals = aspects.aggregate(decomposed=Count("query", distinct=True), aspects=Count("pk"))
    return {"queries": queries.count(), **totals}
