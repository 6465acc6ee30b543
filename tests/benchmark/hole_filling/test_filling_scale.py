"""Filling at the size of BRIDGE: 25 systems, 3,657 queries, depth 10."""

import time

import numpy as np
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
    pairs = planning.preview_filling(collection, runs, 10, before)["candidates"]
    assert pairs > 150_000
    seconds = [time.perf_counter()]
    begun = start_filling(collection=collection, runs=runs, depth=10, qrels=before.number, panel="offline")
    assert prepare_filling(begun.pk)  # A worker does that for a large one.
    begun.refresh_from_db()
    seconds.append(time.perf_counter())
    assert funnel.compute_funnel(begun).pending == pairs
    seconds.append(time.perf_counter())
    assert Funnel.of(begun).pending == pairs
    with connection.cursor() as cursor:
        cursor.execute("UPDATE judges_work SET state = 'labelled', label = 0, agreed_in_round = 1")
        cursor.execute("INSERT INTO corpus_label (pair_id, grade, origin) SELECT pair_id, 0, 'debate' FROM judges_work")
        cursor.execute("ANALYZE")
    seconds.append(time.perf_counter())
    after = stages.finish_filling(begun)
    seconds.append(time.perf_counter())
    assert after.counts["judged"] == pairs + KNOWN * QUERIES
    assert comparing.diff_versions(before, after).counts["added"] == pairs
    started, counted, _labelled, finished = np.diff(seconds) / slowness()
    print(f"\nstarted in {started:.1f} s, counted in {counted:.1f} s, filled in {finished:.1f} s")
    assert started < 60 and counted < 10 and finished < 60
