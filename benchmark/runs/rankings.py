"""Rankings in the database: a row for each query of a run, best document first, without those that it excludes."""

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
NAMED_TOGETHER = 200  # Queries whose documents' names are asked for together.
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


def store(run: Run, found: Mapping[int, RankedQuery], names: Mapping[int, str] | None = None) -> int:
    """Write rankings by primary key of the query, and return how many documents they hold.

    A query that has a ranking already keeps it. Scores are kept as the float32 that trec_eval
    reads. `names`: external ids of the documents, where the caller has them. Raises BadInput for
    scores that are none and for a document that stands twice, JobLost when the run was cancelled or
    is somebody else's.
    """
    # All names in one statement, since ties need them.
    ids = names_of(key for one in found.values() for key in one.documents) if names is None else names
    left_out = excluded_documents(run.collection, found, keep_self=bool(run.recipe.get(KEEP_SELF)))
    rows = [_insert_values(run, query, one, ids, left_out.get(query, frozenset())) for query, one in found.items()]
    with transaction.atomic():
        # The row's lock and its token keep a worker that lost its lease from writing beside the new one.
        mine = Run.objects.filter(pk=run.pk, fencing_token=run.fencing_token)
        if mine.select_for_update(no_key=True).first() is None:
            raise LeaseLost(f"run {run.name} was cancelled, or another worker makes it")
        with connection.cursor() as cursor:
            cursor.executemany(INSERT, [row for row, _size in rows])
    return sum(size for _row, size in rows)


def _insert_values(
    run: Run, query: int, one: RankedQuery, ids: Mapping[int, str], left_out: frozenset[str]
) -> tuple[tuple[int | float | str | None, ...], int]:
    """Values for INSERT, and how many documents they hold."""
    documents, scores = np.asarray(one.documents, dtype=np.int64), np.asarray(one.scores, dtype=np.float64)
    # Left out before the depth is cut, so that the ranking is as deep as asked.
    if left_out:
        kept = np.array([ids[int(key)] not in left_out for key in documents], dtype=bool)
        documents, scores = documents[kept], scores[kept]
    documents, ranked = in_order(documents, scores, ids)
    # Imported runs (depth 0 at first) keep all that their file has.
    if run.depth:
        documents, ranked = documents[: run.depth], ranked[: run.depth]
    arrays = (array_literal(documents.tolist()), array_literal(ranked.astype(np.float64).tolist()))
    text = one.text.replace("\0", "")
    return (run.pk, query, *arrays, one.seconds, one.tokens_in, one.tokens_out, text), len(documents)


def array_literal(numbers: Iterable[float]) -> str:
    """An array as PostgreSQL writes it: adapting a list number by number takes the longest."""
    return f"{{{','.join(map(repr, numbers))}}}"


def in_order(documents: Keys, scores: npt.NDArray[np.float64], ids: Mapping[int, str]) -> tuple[Keys, Scores]:
    """Sort by float32 score, then external id, both descending (trec_eval). Raises BadInput."""
    # Equal lengths, and no document twice: trec_eval would count it twice.
    if len(documents) != len(scores) or len(np.unique(documents)) != len(documents):
        raise BadInput("A ranking names a document twice, or has not one score for each document")
    with np.errstate(over="ignore"):
        ranked = scores.astype(np.float32)
    if not np.isfinite(ranked).all():
        raise BadInput("A ranking holds a score that is no number or too large for 32 bits")
    # Names are sorted only where two scores are equal: most rankings have none, and names are slow.
    order = np.argsort(-ranked, kind="stable")
    if len(ranked) > 1 and (np.diff(ranked[order]) == 0).any():
        names = sorted(range(len(documents)), key=lambda at: ids[int(documents[at])], reverse=True)
        by_name = np.array(names, dtype=np.intp)
        order = by_name[np.argsort(-ranked[by_name], kind="stable")]
    return documents[order], ranked[order]


def names_of(keys: Iterable[int]) -> dict[int, str]:
    """External ids of documents by their primary keys."""
    wanted = array_literal({int(key) for key in keys})
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, external_id FROM corpus_document WHERE id = ANY(%s::bigint[])", [wanted])
        return dict(cursor.fetchall())


def excluded_documents(
    collection: Collection, wanted: Iterable[int] | None = None, *, keep_self: bool = False
) -> dict[int, frozenset[str]]:
    """Return by query the external ids of documents that it excludes; queries without any are left out.

    A query that is a document itself excludes that one, as BEIR's measures do (ArguAna, Quora), unless it is kept.
    """
    wanted = None if wanted is None else list(wanted)
    rows = Query.objects.filter(collection=collection, metadata__has_key=EXCLUDED)
    if wanted is not None:
        rows = rows.filter(pk__in=wanted)
    own = {} if keep_self else find_selves(collection, wanted)
    found = {query: frozenset([name]) for query, (_key, name) in own.items()}
    for key, value in rows.values_list("pk", f"metadata__{EXCLUDED}"):
        if ids := frozenset(str(one) for one in (value if isinstance(value, list) else [value])):
            found[key] = found.get(key, frozenset()) | ids
    return found


def current_queries(collection: Collection, recipe: Mapping[str, Any] = MappingProxyType({})) -> list[Query]:
    """The current queries that a run of this recipe ranks, by external id.

    Without those that models wrote (synthetic ones, keyword forms), which are in no qrels, unless
    the recipe says so or there are no others.
    """
    rows = list(Query.objects.filter(collection=collection, is_current=True))
    if not recipe.get(SYNTHETIC):
        rows = [query for query in rows if not query.metadata.get("synthetic")] or rows
    # In Python, since PostgreSQL sorts by its collation and programs of the field by code points.
    return sorted(rows, key=lambda query: query.external_id)


def unranked_queries(run: Run) -> list[Query]:
    """Queries that have no ranking in the run yet."""
    done = set(Ranking.objects.filter(run=run).values_list("query_id", flat=True))
    return [query for query in current_queries(run.collection, run.recipe) if query.pk not in done]


# Arrays as text: psycopg builds a Python list number by number, and this is read by numpy at once.
LOAD = """
SELECT run_id, array_agg(query_id), array_agg(cardinality(best)), string_agg(array_to_string(best, ' '), ' ')
FROM benchmark_ranking, LATERAL (SELECT documents[1:coalesce(%(depth)s, cardinality(documents))] AS best) cut
WHERE run_id = ANY(%(runs)s) GROUP BY run_id, query_id / 1000
"""


def load(runs: Sequence[int], depth: int | None = None) -> dict[int, dict[int, Keys]]:
    """Documents (primary keys, int64) best first, by run and query; the best `depth`, or all. Reads in one pass."""
    found: dict[int, dict[int, Keys]] = {int(run): {} for run in runs}
    with connection.cursor() as cursor:
        cursor.execute(LOAD, {"runs": list(found), "depth": depth})
        for run, queries, lengths, text in cursor:
            everything = np.fromstring(text or "", dtype=np.int64, sep=" ")
            parts = np.split(everything, np.cumsum(lengths)[:-1])
            found[run].update(zip(queries, parts, strict=True))
    return found


def scores_of(run: Run | int) -> dict[int, tuple[Keys, npt.NDArray[np.float64]]]:
    """Return by query its documents (primary keys), best first, and their scores."""
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
    """Lines of a TREC run, queries by id; equal scores stand in trec_eval's order. The tag is the run's name."""
    for query, pairs in _named_rankings(run):
        for rank, (document, score) in enumerate(pairs, 1):
            yield f"{query} Q0 {document} {rank} {score:.9g} {run.name}\n"


def _named_rankings(run: Run) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    rows = Ranking.objects.filter(run=run).values_list("query_id", flat=True)
    names = dict(Query.objects.filter(pk__in=rows).values_list("pk", "external_id"))
    order = sorted(names, key=lambda key: names[key])
    for begin in range(0, len(order), NAMED_TOGETHER):
        part = order[begin : begin + NAMED_TOGETHER]
        # Names and rankings of one moment: a document may be exchanged in between.
        with transaction.atomic():
            found = {row.query_id: row for row in Ranking.objects.filter(run=run, query__in=part)}
            ids = names_of(key for row in found.values() for key in row.documents)
        for query in part:
            row = found.get(query)
            if row is not None:
                documents = (ids[key] for key in row.documents)
                yield names[query], list(zip(documents, row.scores, strict=True))
