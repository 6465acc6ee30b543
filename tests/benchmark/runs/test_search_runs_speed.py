"""A run by a search endpoint takes little longer than a bare script of the same requests (tools/bench/search_run)."""

import pytest

from tools.bench import search_run


@pytest.mark.weekly
@pytest.mark.django_db(transaction=True)
def test_a_run_takes_at_most_two_and_a_half_times_as_long(instance, monkeypatch):
    """The figure's aim is 1.5 for 2,000 queries on an idle machine; here other tests run beside it."""
    monkeypatch.setattr(search_run, "QUERIES", 600)
    monkeypatch.setattr(search_run, "ROUNDS", 2)
    figures = search_run.measure()
    print(figures)
    assert min(figure["value"] for figure in figures) <= 2.5
