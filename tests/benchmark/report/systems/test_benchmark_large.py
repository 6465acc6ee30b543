"""What pages of the benchmark cost at the size of BRIDGE: 25 systems, 3,657 queries, depth 10 (check 5)."""

import time
from statistics import median

import pytest
from django.test import Client

from annotation.models import Role
from benchmark.models import Filling, QrelsRow
from benchmark.qrels import comparing
from benchmark.report import reports
from tests.factories import client_of, make_member
from tests.large_report import large_report
from tests.speed import slowness

pytestmark = [pytest.mark.weekly, pytest.mark.django_db]
MOST_MS = 300
TIMES = 3


def test_every_page_answers_in_300_ms_at_25_systems_and_3657_queries():
    large = large_report(25, 3657)
    collection, runs = large.collection, large.runs
    reports.ensure_report(collection, large.before, large.before, runs)
    reports.ensure_report(collection, large.after, large.after, runs)
    report = reports.ensure_report(collection, large.before, large.after, runs)
    funnel = {"pool": 90_000, "judged": 10_000, "candidates": 80_000, "known": 0, "asked": 80_000, "settled": 80_000}
    filling = Filling.objects.create(
        collection=collection, depth=10, before=large.before, after=large.after, state="filled", funnel=complete(funnel)
    )
    filling.runs.set(runs)
    client = client_of(make_member(collection, "charlie", Role.ADMIN))
    query = QrelsRow.objects.filter(qrels=large.after).values_list("query_id", flat=True)[1000]
    home = f"/c/{collection.name}/benchmark/"
    compare = f"compare/?a={runs[0].pk}&b={runs[1].pk}"
    pages = ["", "runs/", compare, "hole-filling/", f"hole-filling/{filling.number}/", f"report/{report.number}/",
             f"runs/{runs[-1].pk}/", "queries/", f"queries/{query}/", "qrels/",
             "qrels/diff/?one=1&other=2"]  # fmt: skip
    client.get(home)
    taken = {part: measured(client, home + part) for part in pages}
    print("\n".join(f"{milliseconds:6.0f} ms  benchmark/{part}" for part, milliseconds in taken.items()))
    assert {part: ms for part, ms in taken.items() if ms >= MOST_MS} == {}


def measured(client: Client, path: str) -> float:
    """Median milliseconds of a few requests on an ordinary machine; none may use what another one worked out."""
    found = []
    for _ in range(TIMES):
        comparing._compute_diff.cache_clear()
        begun = time.perf_counter()
        assert client.get(path).status_code == 200, path
        found.append(1000 * (time.perf_counter() - begun))
    print(f"\n  {path}: {', '.join(f'{one:.0f}' for one in found)} ms", end="")
    return median(found) / slowness()


def complete(funnel: dict[str, int]) -> dict[str, object]:
    """A stored funnel with every step."""
    rest = ("filtered", "after_filter", "labelled", "to_people", "people_open", "people_settled", "failed", "pending")
    return {**dict.fromkeys(rest, 0), "relevant": 0, "rounds": [], "is_done": True, **funnel}
