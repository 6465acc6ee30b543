"""The list of queries in the workshop: how far each is, filters in the URL, pages by key."""

from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Left

from annotation.aspects.workspace import reviewable_pairs
from corpus.models import Collection, CurrentJudgment, Query
from corpus.models.aspects import Aspect

PAGE = 50
STATES = ("none", "review", "done")


def list_queries(
    collection: Collection, *, q: str = "", state: str = "", after: int = 0, before: int = 0
) -> dict[str, Any]:
    """Queries in the order of their import; `q` searches ids and texts."""
    found = _filter_queries(collection, q, state)
    if before:
        # Backwards from the key, and then turned round; one more than a page tells whether there are others.
        keys = list(found.filter(pk__lt=before).order_by("-pk").values_list("pk", flat=True)[: PAGE + 1])
        more_before, more_after = len(keys) > PAGE, True
        keys = sorted(keys[:PAGE])
    else:
        keys = list(found.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[: PAGE + 1])
        more_before, more_after = bool(after), len(keys) > PAGE
        keys = keys[:PAGE]
    return {
        "lines": _load_lines(collection, keys),
        "before": keys[0] if keys and more_before else None,
        "after": keys[-1] if keys and more_after else None,
    }


def _filter_queries(collection: Collection, q: str, state: str) -> QuerySet[Query]:
    found = Query.objects.filter(collection=collection, is_current=True)
    if q:
        found = found.filter(Q(external_id__startswith=q) | Q(text__icontains=q))
    has = Exists(Aspect.objects.filter(query=OuterRef("pk"), is_current=True))
    said = CurrentJudgment.objects.filter(pair=OuterRef("pk"), aspect__is_current=True)
    waiting = Exists(reviewable_pairs(Q(query=OuterRef("pk")), collection.relevant_from).exclude(Exists(said)))
    if state == "none":
        return found.exclude(has)
    if state == "review":
        return found.filter(has & waiting)
    return found.filter(has & ~waiting) if state == "done" else found


_COUNTS = """
WITH pairs AS (
    SELECT p.id, p.query_id,
           EXISTS (SELECT FROM corpus_label l WHERE l.pair_id = p.id AND l.aspect_id IS NULL AND l.grade >= %(from)s)
           OR EXISTS (SELECT FROM current_judgment j JOIN corpus_assessor s ON s.id = j.assessor_id
                      WHERE j.pair_id = p.id AND j.aspect_id IS NULL AND s.kind = 'reference' AND j.grade >= %(from)s)
           OR EXISTS (SELECT FROM corpus_judgment j WHERE j.pair_id = p.id AND j.aspect_id IS NOT NULL) AS concerned,
           EXISTS (SELECT FROM corpus_label l JOIN corpus_aspect a ON a.id = l.aspect_id
                   WHERE l.pair_id = p.id AND a.is_current AND l.grade >= %(from)s) AS kept,
           EXISTS (SELECT FROM current_judgment j JOIN corpus_aspect a ON a.id = j.aspect_id
                   WHERE j.pair_id = p.id AND a.is_current) AS said
    FROM corpus_pair p JOIN corpus_document d ON d.id = p.document_id
    WHERE p.query_id = ANY(%(queries)s::bigint[]) AND d.is_current
)
SELECT q.id, (SELECT count(*) FROM corpus_aspect a WHERE a.query_id = q.id AND a.is_current),
       (SELECT count(*) FROM pairs WHERE query_id = q.id AND kept),
       (SELECT count(*) FROM pairs WHERE query_id = q.id AND concerned AND NOT said)
FROM unnest(%(queries)s::bigint[]) AS q(id)
"""


def _load_lines(collection: Collection, keys: list[int]) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, {"queries": keys, "from": collection.relevant_from})
        counts = {
            pk: {"aspects": aspects, "kept": kept, "to_review": to_review}
            for pk, aspects, kept, to_review in cursor.fetchall()
        }
    rows = Query.objects.filter(pk__in=keys).annotate(begin=Left("text", 300)).order_by("pk")
    return [
        {"id": pk, "external_id": external_id, "text": begin, **counts[pk]}
        for pk, external_id, begin in rows.values_list("pk", "external_id", "begin")
    ]


def count_totals(collection: Collection) -> dict[str, Any]:
    """Counted in one statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT (SELECT count(*) FROM corpus_query WHERE collection_id = %(c)s AND is_current),
                      count(DISTINCT a.query_id), count(*)
               FROM corpus_aspect a JOIN corpus_query q ON q.id = a.query_id
               WHERE q.collection_id = %(c)s AND q.is_current AND a.is_current""",
            {"c": collection.pk},
        )
        return dict(zip(("queries", "decomposed", "aspects"), cursor.fetchone(), strict=True))
