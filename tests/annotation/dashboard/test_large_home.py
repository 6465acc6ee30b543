"""The home of a large collection costs few statements, whatever its size (check 13; the full size: `tools.bench`)."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.label_quality.statistics import STATISTICS
from tests.large_site import large_site

pytestmark = pytest.mark.django_db
MOST = 21


@pytest.mark.slow
def test_the_home_of_many_pairs_costs_few_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    collection, _, charlie = large_site(2_000)
    monkeypatch.setattr("annotation.label_quality.statistics.SMALL", 1_000)
    client = Client()
    client.force_login(charlie.user)
    for computed in (False, True):
        if computed:
            STATISTICS.compute_now(collection)
        client.get("/c/large/")
        with CaptureQueriesContext(connection) as found:
            page = client.get("/c/large/")
        assert len(found) <= MOST, [one["sql"][:100] for one in found]
        assert "2,000 pairs" in page.text
        assert ('id="routes"' in page.text) is computed
        read = [one["sql"] for one in found if "judges_attempt" in one["sql"] and "generate_series" not in one["sql"]]
        assert read == [], "attempts are read by a sample of keys, never all"
