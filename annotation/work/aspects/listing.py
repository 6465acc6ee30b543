"""The list of queries in the workshop: how far each is, filters in the URL, pages by key."""

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
    """Queries in the order of their import; `q` searches ids and texts."""
    found = Query.objects.filter(collection=collection, is_current=True)
    if q:
        found = found.filter(Q(external_id__startswith=q) | Q(text__icontains=q))
    has = Exists(Aspect.objects.filter(query=OuterRef("pk"), is_current=True))
    waiting = Exists(unreviewed_pairs(Q(query=OuterRef("pk")), collection))
    found = found.filter({"none": ~has, "review": has & waiting, "done": has & ~waiting}.get(state, Q()))
    # Backwards from the key, then turned round; one more than a page tells if there are others.
    found = found.filter(pk__lt=before).order_by("-pk") if before else found.filter(pk__gt=after).order_by("pk")
    keys = list(found.values_list("pk", flat=True)[: PAGE + 1])
    more = len(keys) > PAGE
    more_before, more_after = (more, True) if before else (bool(after), more)
    keys = sorted(keys[:PAGE])
    return {
        "lines": _load_lines(collection, keys),
        "before": keys[0] if keys and more_before else None,
        "after": keys[-1] if keys and more_after else None,
    }


def unreviewed_pairs(query: Q, collection: Collection) -> QuerySet[Pair]:
    """Pairs to be reviewed about which nobody has said anything under an aspect that holds."""
    said = CurrentJudgment.objects.filter(pair=OuterRef("pk"), aspect__is_current=True)
    return reviewable_pairs(query, collection.relevant_from).exclude(Exists(said))


def _load_lines(collection: Collection, keys: list[int]) -> list[dict[str, Any]]:
    labels = Label.objects.filter(pair=OuterRef("pk"), aspect__is_current=True, grade__gte=collection.relevant_from)
    counted: dict[str, QuerySet[Any]] = {
        "aspects": Aspect.objects.filter(query__in=keys, is_current=True),
        "kept": Pair.objects.filter(Exists(labels), query__in=keys, document__is_current=True),
        "to_review": unreviewed_pairs(Q(query__in=keys), collection),
    }
    counts = {name: dict(rows.order_by().values_list("query").annotate(Count("pk"))) for name, rows in counted.items()}
    queries = Query.objects.filter(pk__in=keys).annotate(begin=Left("text", 300)).order_by("pk")
    newest = AspectRevision.objects.filter(query=OuterRef("query")).order_by("-number").values("pk")[:1]
    submitted = AspectReview.objects.filter(query__in=keys, state=AspectReview.State.SUBMITTED).order_by("pk")
    reviewed = dict(
        submitted.annotate(holds=ExpressionWrapper(Q(final=Subquery(newest)), BooleanField())).values_list(
            "query", "holds"
        )
    )
    return [
        {"id": pk, "external_id": external_id, "text": begin, "reviewed": reviewed.get(pk)}
        | {name: by_query.get(pk, 0) for name, by_query in counts.items()}
        for pk, external_id, begin in queries.values_list("pk", "external_id", "begin")
    ]


def count_totals(collection: Collection) -> dict[str, int]:
    """Count the queries, those that are decomposed, and their aspects."""
    queries = Query.objects.filter(collection=collection, is_current=True)
    aspects = Aspect.objects.filter(query__in=queries, is_current=True)
    totals = aspects.aggregate(decomposed=Count("query", distinct=True), aspects=Count("pk"))
    return {"queries": queries.count(), **totals}
