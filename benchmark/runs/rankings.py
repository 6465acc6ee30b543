"""Rankings in the database: a row for each query of a run, best document first, without excluded documents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db import connection, transaction

from benchmark.models import Ranking, Run
from corpus.errors import BadInput
from corpus.models import Collection, Query
from corpus.search.selves import find_selves
from jobs.leases import LeaseLost

Keys = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
NAMED_TOGETHER = 200  # Queries whose documents' names are fetched together.
# In the metadata of a query: ids of documents that no system may return for it (BRIGHT).
EXCLUDED = "excluded_ids"
SYNTHETIC = "synthetic"  # In a recipe: queries that models wrote are ranked, too.
KEEP_SELF = "keep_self"  # In a recipe: a query that is a document stays in its own ranking.
INSERT = """
INSERT INTO benchmark_ranking (run_id, query_id, documents, scores, seconds, tokens_in, tokens_out, text)
VALUES (%s, %s, %s::bigint[], %s::float8[], %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class RankedQuery:
    """A system's documents for one query, in any order: primary keys and scores."""

    documents: Sequence[int] | Keys
    scores: Sequence[float] | npt.NDArray[np.floating]
    seconds: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    text: str = ""


def store(run: Run, ranked_queries: Mapping[int, RankedQuery], names: Mapping[int, str] | None = None) -> int:
    """Store rankings by primary key of the query, and return the number of documents stored.

    A query that already has a ranking keeps it. Scores are rounded to float32, as trec_eval reads
    them. `names`: external ids of the documents, if the caller has them. Raises BadInput for
    invalid scores and for a document listed twice, LeaseLost when the run was cancelled or taken
    over by another worker.
    """
    # All names in one statement, since ties need them.
    ids = names_of(key for ranking in ranked_queries.values() for key in ranking.documents) if names is None else names
    excluded = excluded_documents(run.collection, ranked_queries, keep_self=bool(run.recipe.get(KEEP_SELF)))
    rows = [
        _insert_values(run, query, ranking, ids, excluded.get(query, frozenset()))
        for query, ranking in ranked_queries.items()
    ]
    with transaction.atomic():
        # The row lock and the fencing token keep a worker that lost its lease from writing beside the new one.
        own_row = Run.objects.filter(pk=run.pk, fencing_token=run.fencing_token)
        if own_row.select_for_update(no_key=True).first() is None:
            raise LeaseLost(f"run {run.name} was cancelled, or another worker makes it")
        with connection.cursor() as cursor:
            cursor.executemany(INSERT, [row for row, _size in rows])
    return sum(size for _row, size in rows)


def _insert_values(
    run: Run, query: int, ranking: RankedQuery, ids: Mapping[int, str], excluded: frozenset[str]
) -> tuple[tuple[int | float | str | None, ...], int]:
    """Return the values for INSERT, and the number of documents."""
    documents, scores = np.asarray(ranking.documents, dtype=np.int64), np.asarray(ranking.scores, dtype=np.float64)
    # Excluded before the ranking is cut at its depth, so that it is as deep as requested.
    if excluded:
        is_returned = np.array([ids[int(key)] not in excluded for key in documents], dtype=bool)
        documents, scores = documents[is_returned], scores[is_returned]
    documents, ranked_scores = sort_by_score(documents, scores, ids)
    # Imported runs (depth 0 at first) keep all documents of their file.
    if run.depth:
        documents, ranked_scores = documents[: run.depth], ranked_scores[: run.depth]
    arrays = (array_literal(documents.tolist()), array_literal(ranked_scores.astype(np.float64).tolist()))
    text = ranking.text.replace("\0", "")
    return (run.pk, query, *arrays, ranking.seconds, ranking.tokens_in, ranking.tokens_out, text), len(documents)


def array_literal(numbers: Iterable[float]) -> str:
    """Return an array in PostgreSQL's notation, because adapting a list number by number is slow."""
    return f"{{{','.join(map(repr, numbers))}}}"


def sort_by_score(documents: Keys, scores: npt.NDArray[np.float64], ids: Mapping[int, str]) -> tuple[Keys, Scores]:
    """Sort by float32 score, then external id, both descending (trec_eval). Raises BadInput."""
    # Equal lengths, and no document twice: trec_eval would count it twice.
    if len(documents) != len(scores) or len(np.unique(documents)) != len(documents):
        raise BadInput("A ranking lists a document twice, or has too few or too many scores.")
    with np.errstate(over="ignore"):
        float_scores = scores.astype(np.float32)
    if not np.isfinite(float_scores).all():
        raise BadInput("A ranking contains a score that is not a number or too large for 32 bits.")
    # Names are sorted only where two scores are equal, because sorting names is slow.
    order = np.argsort(-float_scores, kind="stable")
    if len(float_scores) > 1 and (np.diff(float_scores[order]) == 0).any():
        names = sorted(range(len(documents)), key=lambda position: ids[int(documents[position])], reverse=True)
        positions = np.array(names, dtype=np.intp)
        order = positions[np.argsort(-float_scores[positions], kind="stable")]
    return documents[order], float_scores[order]


def names_of(keys: Iterable[int]) -> dict[int, str]:
    """Return external ids of documents by their primary keys."""
    id_array = array_literal({int(key) for key in keys})
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, external_id FROM corpus_document WHERE id = ANY(%s::bigint[])", [id_array])
        return dict(cursor.fetchall())


def excluded_documents(
    collection: Collection, queries: Iterable[int] | None = None, *, keep_self: bool = False
) -> dict[int, frozenset[str]]:
    """Return by query the external ids of the documents that it excludes, for queries that exclude any.

    A query that is itself a document excludes that document, as in BEIR (ArguAna, Quora), unless `keep_self`.
    """
    queries = None if queries is None else list(queries)
    rows = Query.objects.filter(collection=collection, metadata__has_key=EXCLUDED)
    if queries is not None:
        rows = rows.filter(pk__in=queries)
    own_documents = {} if keep_self else find_selves(collection, queries)
    excluded = {query: frozenset([name]) for query, (_key, name) in own_documents.items()}
    for key, value in rows.values_list("pk", f"metadata__{EXCLUDED}"):
        if ids := frozenset(str(external_id) for external_id in (value if isinstance(value, list) else [value])):
            excluded[key] = excluded.get(key, frozenset()) | ids
    return excluded


def current_queries(collection: Collection, recipe: Mapping[str, Any] = MappingProxyType({})) -> list[Query]:
    """Return the current queries that a run of this recipe ranks, by external id.

    Queries that models wrote (synthetic ones, keyword forms) are in no qrels. They are left out
    unless the recipe includes them or there are no others.
    """
    rows = list(Query.objects.filter(collection=collection, is_current=True))
    if not recipe.get(SYNTHETIC):
        rows = [query for query in rows if not query.metadata.get("synthetic")] or rows
    # Sorted in Python, because PostgreSQL sorts by its collation and retrieval tools by code points.
    return sorted(rows, key=lambda query: query.external_id)


def unranked_queries(run: Run) -> list[Query]:
    """Return the queries that have no ranking in the run yet."""
    ranked = set(Ranking.objects.filter(run=run).values_list("query_id", flat=True))
    return [query for query in current_queries(run.collection, run.recipe) if query.pk not in ranked]


# Arrays as text, which numpy parses at once, because psycopg builds a Python list number by number.
LOAD = """
SELECT run_id, array_agg(query_id), array_agg(cardinality(best)), string_agg(array_to_string(best, ' '), ' ')
FROM benchmark_ranking, LATERAL (SELECT documents[1:coalesce(%(depth)s, cardinality(documents))] AS best) top
WHERE run_id = ANY(%(runs)s) GROUP BY run_id, query_id / 1000
"""


def load(runs: Sequence[int], depth: int | None = None) -> dict[int, dict[int, Keys]]:
    """Load documents (primary keys, int64), best first, by run and query; the best `depth`, or all."""
    rankings: dict[int, dict[int, Keys]] = {int(run): {} for run in runs}
    with connection.cursor() as cursor:
        cursor.execute(LOAD, {"runs": list(rankings), "depth": depth})
        for run, queries, lengths, text in cursor:
            documents = np.fromstring(text or "", dtype=np.int64, sep=" ")
            parts = np.split(documents, np.cumsum(lengths)[:-1])
            rankings[run].update(zip(queries, parts, strict=True))
    return rankings


def scores_of(run: Run | int) -> dict[int, tuple[Keys, npt.NDArray[np.float64]]]:
    """Load by query the documents (primary keys), best first, and their scores."""
    key = run if isinstance(run, int) else run.pk
    rows = Ranking.objects.filter(run=key).values_list("query_id", "documents", "scores")
    return {
        query: (np.array(documents, dtype=np.int64), np.array(scores, dtype=np.float64))
        for query, documents, scores in rows.iterator()
    }


def as_run(run: Run) -> dict[str, dict[str, float]]:
    """Return the run by external ids, query -> document -> score, for measures.rankings."""
    return {query: dict(pairs) for query, pairs in _named_rankings(run)}


def write_trec(run: Run) -> Iterator[str]:
    """Yield the lines of a TREC run, queries by id, equal scores in trec_eval's order. The tag is the run's name."""
    for query, pairs in _named_rankings(run):
        for rank, (document, score) in enumerate(pairs, 1):
            yield f"{query} Q0 {document} {rank} {score:.9g} {run.name}\n"


def _named_rankings(run: Run) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    rows = Ranking.objects.filter(run=run).values_list("query_id", flat=True)
    names = dict(Query.objects.filter(pk__in=rows).values_list("pk", "external_id"))
    order = sorted(names, key=lambda key: names[key])
    for begin in range(0, len(order), NAMED_TOGETHER):
        batch = order[begin : begin + NAMED_TOGETHER]
        # One transaction for rankings and names: a document may be replaced in between.
        with transaction.atomic():
            row_of = {row.query_id: row for row in Ranking.objects.filter(run=run, query__in=batch)}
            ids = names_of(key for row in row_of.values() for key in row.documents)
        for query in batch:
            row = row_of.get(query)
            if row is not None:
                documents = (ids[key] for key in row.documents)
                yield names[query], list(zip(documents, row.scores, strict=True))
