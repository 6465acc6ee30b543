"""Inputs of a report, read from the database."""

from collections.abc import Sequence

import numpy as np
from django.db import connection
from django.db.models import Max

from benchmark.measures.aspects import QueryAspects, a_recall, alpha_ndcg, ideal_alpha_dcg
from benchmark.models import Qrels, Report, Run
from benchmark.qrels import reading
from benchmark.report.computing import Aspected, ReportQuestion, ReportSystem
from benchmark.report.graded_runs import Floats, Judgments, Rankings
from benchmark.report.naming import ASPECTS
from benchmark.runs import rankings
from corpus.models import Collection
from corpus.models.aspects import AspectRevision

SUPPORTS = """
SELECT a.query_id, a.importance,
       COALESCE((SELECT array_agg(d.id) FROM corpus_label l JOIN corpus_pair p ON p.id = l.pair_id
                 JOIN corpus_document d ON d.id = p.document_id
                 WHERE l.aspect_id = a.id AND l.grade >= %(relevant_from)s AND d.is_current), '{}')
FROM corpus_aspect a JOIN corpus_query q ON q.id = a.query_id
WHERE q.collection_id = %(collection)s AND q.is_current AND a.is_current
ORDER BY a.query_id, a.place, a.id
"""


def aspects_mark(collection: Collection) -> int:
    """Mark the state of the collection's aspects, whose history only grows; 0: it has none."""
    found = AspectRevision.objects.filter(query__collection=collection).aggregate(newest=Max("pk"))
    return found["newest"] or 0


def load_question(report: Report) -> ReportQuestion:
    """Load all that a report says it is about."""
    runs = list(Run.objects.filter(pk__in=report.options["runs"], collection=report.collection))
    k = int(report.options["k"])
    aspects_k = int(report.options.get("aspects_k") or k)
    # Measures of aspects may cut deeper than the others (25 in BRIGHT-Pro); each cuts what it gets.
    loaded = rankings.load([run.pk for run in runs], max(k, aspects_k))
    given = sorted(runs, key=lambda run: (run.name, run.pk))
    systems = [ReportSystem(run.pk, run.name, run.kind, loaded[run.pk]) for run in given]
    before = load_judgments(report.before)
    return ReportQuestion(
        systems,
        before,
        before if report.after_id == report.before_id else load_judgments(report.after),
        k,
        relevant_from=report.collection.relevant_from,
        seed=int(report.options["seed"]),
        aspects=measure_aspects(report.collection, [system.rankings for system in systems], aspects_k),
    )


def load_judgments(version: Qrels) -> Judgments:
    """The queries of which the version judges anything, as trec_eval counts queries."""
    return {query: found for query, found in reading.load(version).items() if len(found[0])}


def measure_aspects(collection: Collection, runs: Sequence[Rankings], k: int) -> Aspected | None:
    """Return alpha-nDCG@k and A-Recall@k of every run on queries with aspects, both forms; None without aspects."""
    with connection.cursor() as cursor:
        cursor.execute(SUPPORTS, {"collection": collection.pk, "relevant_from": collection.relevant_from})
        rows = list(cursor.fetchall())
    # External ids of the documents that support any.
    names = rankings.names_of(key for _, _, documents in rows for key in documents)
    by_query: dict[int, list[tuple[int, list[str]]]] = {}
    for query, importance, documents in rows:
        by_query.setdefault(query, []).append((importance, [names[key] for key in documents]))
    found = {query: QueryAspects.of(aspects) for query, aspects in by_query.items()}
    if not any(one.supports for one in found.values()):
        return None
    queries = sorted(found)
    values: dict[str, Floats] = {key: np.zeros((len(runs), len(queries))) for key in ASPECTS}
    for at, query in enumerate(queries):
        whole = found[query]
        for form, one in (("", whole), ("_one", whole.with_single_aspects())):
            best = ideal_alpha_dcg(one, k)  # the same for every run, and the slow part
            for place, ranked in enumerate(runs):
                top = [names.get(int(key), "") for key in ranked.get(query, ())[:k]]
                values[f"alpha_ndcg{form}"][place, at] = alpha_ndcg(top, one, k, best=best)
                values[f"a_recall{form}"][place, at] = a_recall(top, one, k)
    return Aspected(queries, values, k)
