"""What a poll costs at a million pairs: each of its statements is short, whatever the collection holds."""

import os

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import client_of
from tests.large_site import analyse, large_site
from tests.speed import slowness

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.weekly]
PAIRS = int(os.environ.get("QUORUM_TEST_PAIRS", 1_000_000))
MOST_MS, STATEMENTS = 20.0, 18


def test_every_statement_of_a_poll_takes_less_than_20_ms_at_a_million_pairs() -> None:
    _collection, _campaign, charlie = large_site(PAIRS, attempts=False)
    analyse()
    client = client_of(charlie)
    client.get("/c/large/inbox/")  # Counts the skipped pairs, for a minute.
    shortest: dict[str, float] = {}
    for _ in range(5):
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/c/large/inbox/").status_code == 200
        assert len(queries) <= STATEMENTS
        for query in queries.captured_queries:
            shortest[query["sql"]] = min(float(query["time"]) * 1000, shortest.get(query["sql"], 1e9))
    print(f"\n{len(queries)} statements, {sum(shortest.values()):.0f} ms together")
    for sql, took in sorted(shortest.items(), key=lambda row: -row[1])[:6]:
        print(f"{took:6.1f} ms {' '.join(sql.split())[:120]}")
    slower = slowness()
    assert [sql for sql, took in shortest.items() if took > MOST_MS * slower] == []
