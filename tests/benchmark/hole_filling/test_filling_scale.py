"""Filling at the size of BRIDGE: 25 systems, 3,657 queries, depth 10."""

import time

import pytest
from django.db import connection

from benchmark.hole_filling import funnel, planning, stages
from benchmark.hole_filling.funnel import Funnel
from benchmark.hole_filling.services import prepare_filling
from benchmark.qrels import comparing
from tests.benchmark_scene import start_filling
from tests.large_report import KNOWN, large_report
from tests.speed import slowness

SYSTEMS, QUERIES = 25, 3_657


@pytest.mark.weekly
@pytest.mark.django_db
def test_a_pool_of_twenty_five_systems_is_filled_in_seconds():
    large = large_report(SYSTEMS, QUERIES)
    collection, runs, before = large.collection, large.runs, large.before
    told: list[str] = []
    clock = time.perf_counter()

    def lap(what: str) -> float:
        nonlocal clock
        seconds, clock = time.perf_counter() - clock, time.perf_counter()
        told.append(f"{what} {seconds:.2f} s")
        return seconds

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
    assert after.counts["judged"] == preview["candidates"] + KNOWN * QUERIES
    assert comparing.diff_versions(before, after).counts["added"] == preview["candidates"]
    lap("diff")
    print("\n" + ", ".join(told))
    assert preview["candidates"] > 150_000
    slow = slowness()
    assert started < 60 * slow and counted < 10 * slow and finished < 60 * slow
