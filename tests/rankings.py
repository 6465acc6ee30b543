"""Runs for tests: rankings by the ids of files, stored as a worker would."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from actions.services import Actor
from benchmark.models import Report, Run
from benchmark.report import reports
from benchmark.runs import rankings, services
from benchmark.runs.builders import RUNS
from benchmark.runs.options import RunOptions
from corpus.models import Collection, Document, Pair, Query
from jobs import leases
from jobs.models import JobState
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_document, make_pair, make_query


def make_run(collection: Collection, name: str, ranked: Mapping[str, Sequence[str]]) -> Run:
    """A finished run: query id -> document ids, best first."""
    queries = dict(Query.objects.filter(collection=collection, is_current=True).values_list("external_id", "pk"))
    documents = dict(Document.objects.filter(collection=collection, is_current=True).values_list("external_id", "pk"))
    depth = max(map(len, ranked.values()), default=0)
    run = Run.objects.create(collection=collection, name=name, kind=Run.Kind.IMPORTED, depth=depth)
    rankings.store(
        run,
        {
            queries[query]: rankings.RankedQuery([documents[one] for one in found], list(range(len(found), 0, -1)))
            for query, found in ranked.items()
        },
    )
    Run.objects.filter(pk=run.pk).update(state=JobState.READY)
    run.refresh_from_db()
    return run


def make_wings(texts: Sequence[str], queries: Sequence[str]) -> Collection:
    """A collection of documents d0, d1, ... and queries q0, q1, ..."""
    documents = {f"d{place}": text for place, text in enumerate(texts)}
    return make_texts("wings", documents, {f"q{place}": text for place, text in enumerate(queries)})


def make_texts(
    name: str,
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    known: Mapping[str, Mapping[str, int]] | None = None,
    **values: object,
) -> Collection:
    """A collection of texts by id. `known`: what its imported qrels say, query -> document -> grade."""
    collection = make_collection(name, **values)
    found = {one: make_document(collection, text, external_id=one) for one, text in documents.items()}
    asked = {one: make_query(collection, text, external_id=one) for one, text in queries.items()}
    if known:
        reference = make_assessor(collection, "qrels", "reference")
        for query, grades in known.items():
            for document, grade in grades.items():
                make_judgment(make_pair(collection, asked[query], found[document]), reference, grade)
        Pair.objects.filter(collection=collection).update(is_candidate=False)
    return collection


def start_run(collection: Collection, system: str = "bm25", name: str = "", **told: Any) -> Run:
    """Start a run that is made here, from the shell."""
    options = RunOptions.read({"system": system, "name": name, **told})
    return services.make_run(Actor("admin"), collection, options)


def work_on(run: Run, stopped: Callable[[], bool] = lambda: False) -> Run:
    """Make a run that waits, as a worker does."""
    row = leases.claim(Run, pk=run.pk)
    assert row is not None, f"{run} does not wait"
    RUNS.perform(row, stopped)
    run.refresh_from_db()
    return run


def make_next_report() -> bool:
    """Make the oldest report that waits, as a worker does; False where none waits."""
    report = leases.claim(Report)
    if report is not None:
        reports.work_on_report(report)
    return report is not None
