"""Rankings as arrays for measures and pools, and as the field's own text for downloads."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from django.db import connection, transaction

from benchmark.models import Ranking, Run
from benchmark.runs.rankings.storing import Keys, names_of
from corpus.models import Query

BATCH = 200
"""Queries whose documents' names are asked for together."""


def load(runs: Sequence[int], depth: int | None = None) -> dict[int, dict[int, Keys]]:
    """Documents (primary keys, int64) best first, by run and query; the best `depth`, or all. Reads in one pass."""
    part = "documents" if depth is None else f"documents[1:{int(depth)}]"
    found: dict[int, dict[int, Keys]] = {int(run): {} for run in runs}
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT run_id, array_agg(query_id), array_agg(cardinality({part})),
                       string_agg(array_to_string({part}, ' '), ' ')
                FROM benchmark_ranking WHERE run_id = ANY(%s) GROUP BY run_id, query_id / 1000""",
            [list(found)],
        )
        for run, queries, lengths, text in cursor:
            everything = np.fromstring(text or "", dtype=np.int64, sep=" ")
            parts = np.split(everything, np.cumsum(lengths)[:-1])
            found[run].update(zip(queries, parts, strict=True))
    return found


def scores_of(run: Run | int) -> dict[int, tuple[Keys, npt.NDArray[np.float64]]]:
    """By query: documents (primary keys) best first, and their scores."""
    key = run if isinstance(run, int) else run.pk
    rows = Ranking.objects.filter(run=key).values_list("query_id", "documents", "scores")
    return {
        query: (np.array(documents, dtype=np.int64), np.array(scores, dtype=np.float64))
        for query, documents, scores in rows.iterator()
    }


def as_run(run: Run) -> dict[str, dict[str, float]]:
    """External ids: query -> document -> score, as benchmark.measures.rankings takes it."""
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
    for begin in range(0, len(order), BATCH):
        part = order[begin : begin + BATCH]
        with transaction.atomic():
            found = {row.query_id: row for row in Ranking.objects.filter(run=run, query__in=part)}
            ids = names_of(key for row in found.values() for key in row.documents)
        for query in part:
            row = found.get(query)
            if row is not None:
                documents = (ids[key] for key in row.documents)
                yield names[query], list(zip(documents, row.scores, strict=True))
