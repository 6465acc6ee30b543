"""A large benchmark, generated: systems of growing quality over queries, qrels with holes, and the same filled."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark.models import Qrels, Ranking, Run
from benchmark.qrels import versions
from benchmark.qrels.reading import ReadQrel
from corpus.models import Collection, Document, Query
from jobs.models import JobState
from tests import factories

CANDIDATES = 60
"""Documents of a query that any system may return."""
KNOWN = 3
"""Of them, those that the original qrels judge: relevant, not relevant, relevant."""


@dataclass(frozen=True)
class Large:
    collection: Collection
    before: Qrels
    after: Qrels
    runs: list[Run]


def large_report(systems: int, queries: int, depth: int = 10, documents: int = 20_000) -> Large:
    """Rows of everything that a report and its pages read; seeded. The filled version judges every candidate."""
    random = np.random.default_rng(0)
    collection = factories.make_collection(grades=3)
    asked = Query.objects.bulk_create(
        [
            Query(collection=collection, external_id=f"q{n:05}", text=f"question {n}", content_hash=f"{n}")
            for n in range(queries)
        ]
    )
    kept = Document.objects.bulk_create(
        [
            Document(collection=collection, external_id=f"d{n:06}", text=f"passage {n} of many", content_hash=f"{n}")
            for n in range(documents)
        ],
        batch_size=5_000,
    )
    keys = np.array([document.pk for document in kept], dtype=np.int64)
    candidates = np.array([random.choice(keys, CANDIDATES, replace=False) for _ in asked])
    grades = np.where(random.random(candidates.shape) < 0.15, random.integers(1, 4, candidates.shape), 0).astype(
        np.int16
    )
    grades[:, :KNOWN] = [2, 0, 1]
    pks = [query.pk for query in asked]
    before = versions.store_version(
        collection, Qrels.Kind.ORIGINAL, _rows(pks, candidates[:, :KNOWN], grades[:, :KNOWN], "original")
    )
    after = versions.store_version(collection, Qrels.Kind.FILLED, _rows(pks, candidates, grades, "debate"))
    runs = [_run(collection, place, pks, candidates, grades, depth) for place in range(systems)]
    return Large(collection, before, after, runs)


def _rows(pks: list[int], documents: NDArray[np.int64], grades: NDArray[np.int16], origin: str) -> dict[int, ReadQrel]:
    found = {}
    for pk, own, given in zip(pks, documents, grades, strict=True):
        order = np.argsort(own)
        found[pk] = ReadQrel(own[order], given[order], [origin] * len(own))
    return found


def _run(
    collection: Collection,
    place: int,
    pks: list[int],
    candidates: NDArray[np.int64],
    grades: NDArray[np.int16],
    depth: int,
) -> Run:
    """Noise, and a little more of the truth for each system. Some queries are missing or short."""
    random = np.random.default_rng(place + 1)
    run = Run.objects.create(
        collection=collection, name=f"system-{place:02}", kind=Run.Kind.IMPORTED, state=JobState.READY, depth=depth
    )
    scores = random.random(candidates.shape) + 0.02 * place * grades
    best = np.argsort(-scores, axis=1)[:, :depth]
    top = np.take_along_axis(candidates, best, axis=1).tolist()
    given = np.take_along_axis(scores, best, axis=1).tolist()
    rows = [
        Ranking(run=run, query_id=pk, documents=documents, scores=values)
        for n, (pk, documents, values) in enumerate(zip(pks, top, given, strict=True))
        if n % 500 != place
    ]
    Ranking.objects.bulk_create(rows, batch_size=2_000)
    return run
