"""Inputs of a report, read from the database."""

from collections.abc import Iterable, Sequence

import numpy as np
from django.db import connection
from django.db.models import Max
from django.utils.translation import gettext as _

from benchmark.measures.aspects import QueryAspects, a_recall, alpha_ndcg, ideal_alpha_dcg
from benchmark.measures.graded_runs import Floats, Judgments, Rankings
from benchmark.models import Qrels, Report, Run
from benchmark.qrels import reading
from benchmark.report import weighting
from benchmark.report.computing import AspectValues, ReportQuestion, ReportSystem
from benchmark.report.naming import ASPECTS
from benchmark.runs import rankings
from corpus.errors import BadInput
from corpus.models import Collection
from corpus.models.aspects import AspectRevision
from store.sql import fetch_rows, read_sql

OUTDATED = read_sql(__file__, "count_outdated")

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
    """Return a number that identifies the state of the collection's aspects; 0 without aspects."""
    # The newest revision identifies the state, because the history only grows.
    newest: int | None = AspectRevision.objects.filter(query__collection=collection).aggregate(pk=Max("pk"))["pk"]
    return newest or 0


def load_question(report: Report) -> ReportQuestion:
    """Load the inputs of a report. Raises BadInput where the counts of the queries changed since it was requested."""
    runs = list(Run.objects.filter(pk__in=report.options["runs"], collection=report.collection))
    k = int(report.options["k"])
    aspects_k = int(report.options.get("aspects_k") or k)
    # Measures of aspects may be deeper than the others (25 in BRIGHT-Pro); each measure cuts at its depth.
    run_rankings = rankings.load([run.pk for run in runs], max(k, aspects_k))
    ordered_runs = sorted(runs, key=lambda run: (run.name, run.pk))
    systems = [ReportSystem(run.pk, run.name, run.kind, run_rankings[run.pk]) for run in ordered_runs]
    before = load_judgments(report.before)
    # Where the report weighs queries, its key names their counts of then: with those of now it would be another one.
    counts = weighting.counts_of(report.collection) if report.options.get("weights") else None
    if counts is not None and weighting.counts_mark(report.collection) != report.options["counts"]:
        raise BadInput(_("The query log's counts have changed since this was requested. Request it again"))
    return ReportQuestion(
        systems,
        before,
        before if report.after_id == report.before_id else load_judgments(report.after),
        k,
        relevant_from=report.collection.relevant_from,
        seed=int(report.options["seed"]),
        aspects=measure_aspects(report.collection, [system.rankings for system in systems], aspects_k),
        counts=counts,
    )


def load_judgments(version: Qrels) -> Judgments:
    """Load the judged queries of a version, as trec_eval counts queries."""
    return {query: judgments for query, judgments in reading.load(version).items() if len(judgments[0])}


def count_outdated(version: Qrels, runs: Iterable[int], k: int | None) -> dict[int, int]:
    """Count by run the documents among the first k of its queries that have a newer text and no grade in the version.

    Grades are of a text: those of the newer one do not count for these runs. `k`: None for whole rankings. Runs without
    such documents are left out.
    """
    return dict(fetch_rows(OUTDATED, qrels=version.pk, runs=list(runs), collection=version.collection_id, k=k))


def measure_aspects(collection: Collection, runs: Sequence[Rankings], k: int) -> AspectValues | None:
    """Return both forms of alpha-nDCG@k and A-Recall@k of every run on queries with aspects; None without any."""
    with connection.cursor() as cursor:
        cursor.execute(SUPPORTS, {"collection": collection.pk, "relevant_from": collection.relevant_from})
        rows = list(cursor.fetchall())
    # External ids of the documents that support aspects.
    names = rankings.names_of(key for _, _, documents in rows for key in documents)
    by_query: dict[int, list[tuple[int, list[str]]]] = {}
    for query, importance, documents in rows:
        by_query.setdefault(query, []).append((importance, [names[key] for key in documents]))
    aspects_of = {query: QueryAspects.of(aspects) for query, aspects in by_query.items()}
    if not any(aspects.supports for aspects in aspects_of.values()):
        return None
    queries = sorted(aspects_of)
    values: dict[str, Floats] = {key: np.zeros((len(runs), len(queries))) for key in ASPECTS}
    for column, query in enumerate(queries):
        for form, aspects in (("", aspects_of[query]), ("_one", aspects_of[query].with_single_aspects())):
            # The ideal is the same for every run, and takes the longest.
            best = ideal_alpha_dcg(aspects, k)
            for row, ranking in enumerate(runs):
                top = [names.get(int(key), "") for key in ranking.get(query, ())[:k]]
                values[f"alpha_ndcg{form}"][row, column] = alpha_ndcg(top, aspects, k, best=best)
                values[f"a_recall{form}"][row, column] = a_recall(top, aspects, k)
    return AspectValues(queries, values, k)
