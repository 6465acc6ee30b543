"""A worker is killed in the middle of a search endpoint's run: another one sends what is not stored, and no more."""

import os
import signal
import subprocess

import pytest

from benchmark.models import Ranking, Run, SearchEndpoint
from benchmark.search_endpoints.options import EndpointOptions
from config.env import ROOT
from corpus.models import Document
from jobs.processes import spawn_child, stop_children
from jobs.workers import live_workers
from judges.workers import worker_pool
from tests.engine_parts import FAST
from tests.factories import make_collection, make_query
from tests.instances import until
from tests.rankings import start_run
from tests.shop_search import shop_search

QUERIES = 240


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_no_request_of_a_stored_answer_is_sent_twice(instance, settings):
    collection = make_collection("shop")
    for number in range(QUERIES):
        make_query(collection, f"shoe {number}", external_id=f"q{number}")
    workers: list[subprocess.Popen[str]] = []
    with shop_search(delay=0.4) as engine:
        settings.SEARCH_HOSTS = frozenset({f"127.0.0.1:{engine.port}"})
        options = EndpointOptions.read({"name": "shop", **engine.settings})
        SearchEndpoint.objects.create(name="shop", kind=options.kind, settings=options.complete_settings())

        def start() -> subprocess.Popen[str]:
            command = worker_pool.worker_command(1, f"search-{len(workers)}")
            environment = {**instance, **FAST, "QUORUM_SEARCH_HOSTS": f"127.0.0.1:{engine.port}"}
            workers.append(spawn_child(command, environment, cwd=ROOT, stderr=subprocess.DEVNULL))
            return workers[-1]

        try:
            first = start()
            until(lambda: bool(live_workers()))
            run = start_run(collection, "search", "shop", endpoint="shop", depth=5)
            until(lambda: Ranking.objects.count() >= 40)
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
            stored = set(Ranking.objects.values_list("query__text", flat=True))
            documents, sent = Document.objects.count(), len(engine.queries)
            start()
            until(lambda: Run.objects.get().state == "ready")
        finally:
            stop_children(workers)
        again = engine.queries[sent:]
    run.refresh_from_db()
    assert 40 <= len(stored) < QUERIES and run.done == Ranking.objects.count() == QUERIES, run.error
    assert not stored & set(again), "a query whose answer is stored was sent again"
    assert len(again) == len(set(again)) == QUERIES - len(stored), "and each of the others once"
    assert run.counts["new"] == Document.objects.count() > documents
