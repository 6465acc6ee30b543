"""Filling at the size of BRIDGE: 25 systems, 3,657 queries, depth 10."""

import time

import pytest
from django.db import connection

from benchmark.hole_filling import funnel, planning, stages
from benchmark.hole_filling.funnel import Funnel
from benchmark.hole_filling.services import prepare_filling
from benchmark.models import Run
from benchmark.qrels import comparing, versions
from corpus.models import Assessor, Collection
from tests.benchmark_scene import start_filling
from tests.factories import make_collection
from tests.speed import slowness

SYSTEMS, QUERIES, DOCUMENTS = 25, 3_657, 20_000

TEXTS = """
INSERT INTO corpus_{table} (collection_id, external_id, text, content_hash, version, is_current, metadata{more})
SELECT %(c)s, n::text, 'text ' || n, md5(n::text), 1, true, '{{}}'{values} FROM generate_series(1, %(count)s) n
"""
RANKINGS = """
INSERT INTO benchmark_ranking (run_id, query_id, documents, scores, tokens_in, tokens_out, text)
SELECT r.id, q.id, ARRAY(SELECT d.low + (hashint8(q.id * 100 + CASE WHEN n < 5 THEN 0 ELSE r.id END + n * 7919)::bigint
    & 2147483647) %% 100 * 190 + n FROM generate_series(0, 9) n), ARRAY[10,9,8,7,6,5,4,3,2,1], 0, 0, ''
FROM benchmark_run r, corpus_query q, (SELECT min(id) AS low FROM corpus_document WHERE collection_id = %(c)s) d
WHERE r.collection_id = %(c)s AND q.collection_id = %(c)s
"""
REFERENCE = """
WITH pairs AS (
    INSERT INTO corpus_pair (collection_id, query_id, document_id, is_candidate, uncertainty)
    SELECT %(c)s, query_id, documents[1], false, 0 FROM benchmark_ranking k JOIN benchmark_run r ON r.id = k.run_id
    WHERE r.name = 'run0' AND r.collection_id = %(c)s RETURNING id)
INSERT INTO corpus_judgment (pair_id, assessor_id, step, grade, arm, guideline, comment)
SELECT id, %(a)s, 'import', 1, '', 0, '' FROM pairs
"""


def world() -> tuple[Collection, list[Run]]:
    collection = make_collection("bridge")
    reference = Assessor.objects.create(collection=collection, kind="reference", name="qrels")
    runs = [
        Run.objects.create(collection=collection, name=f"run{n}", kind="imported", depth=10, state="ready")
        for n in range(SYSTEMS)
    ]
    values = {"c": collection.pk, "a": reference.pk}
    with connection.cursor() as cursor:
        query = TEXTS.format(table="query", more=", answers, instruction", values=", '{}', ''")
        cursor.execute(query, {**values, "count": QUERIES})
        cursor.execute(TEXTS.format(table="document", more=", title", values=", ''"), {**values, "count": DOCUMENTS})
        cursor.execute(RANKINGS, values)
        cursor.execute(REFERENCE, values)
        cursor.execute("ANALYZE")
    return collection, runs


@pytest.mark.slow
@pytest.mark.django_db
def test_a_pool_of_twenty_five_systems_is_filled_in_seconds() -> None:
    collection, runs = world()
    told: list[str] = []
    clock = time.perf_counter()

    def lap(what: str) -> float:
        nonlocal clock
        seconds, clock = time.perf_counter() - clock, time.perf_counter()
        told.append(f"{what} {seconds:.2f} s")
        return seconds

    before = versions.original_version(collection)
    lap("original")
    preview = planning.preview_filling(collection, runs, 10, before)
    lap(f"preview of {preview['candidates']:,} pairs")
    begun = start_filling(collection=collection, runs=runs, depth=10, qrels=before.number, panel="offline")
    assert prepare_filling(begun.pk)  # A worker does that for a large one.
    begun.refresh_from_db()
    started = lap("start")
    assert funnel.compute_funnel(begun).pending == preview["candidates"]
    counted = lap("funnel")
    assert Funnel.of(begun).pending == preview["candidates"]
    lap("funnel as stored")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE judges_work SET state = 'labelled', label = 0, agreed_in_round = 1")
        cursor.execute("INSERT INTO corpus_label (pair_id, grade, origin) SELECT pair_id, 0, 'debate' FROM judges_work")
        cursor.execute("ANALYZE")
    lap("labels (the test's own)")
    after = stages.finish_filling(begun)
    finished = lap("filled version")
    assert after.counts["judged"] == preview["candidates"] + QUERIES
    assert comparing.diff_versions(before, after).counts["added"] == preview["candidates"]
    lap("diff")
    print("\n" + ", ".join(told))
    assert preview["candidates"] > 250_000
    slow = slowness()
    assert started < 60 * slow and counted < 10 * slow and finished < 60 * slow
