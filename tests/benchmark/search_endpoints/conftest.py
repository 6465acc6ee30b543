"""A shop's search service whose query says what it answers, and an owner of the site."""

import pytest

from tests.factories import make_user
from tests.shop_search import shop_search

KEY = "Bearer k3y-that-nobody-may-see"
DOCUMENTS = [
    {"id": number, "name": f"<b>Boot {number}</b>", "description": f"Warm &amp; dry, {number}", "score": 9.5 - number}
    for number in range(1, 6)
]


@pytest.fixture
def engine(settings, monkeypatch):
    """The service; its address is one that the owner of the site allowed, its key is in SHOP_AUTH."""
    with shop_search() as search:
        search.key, search.stock = KEY, DOCUMENTS
        settings.SEARCH_HOSTS = frozenset({f"127.0.0.1:{search.port}"})
        monkeypatch.setenv("SHOP_AUTH", KEY)
        yield search


@pytest.fixture
def shop(engine):
    """The keys of an [[endpoint]] table, as the contract's example has them."""
    return {
        "name": "shop",
        "kind": "http",
        "base_url": engine.address,
        "method": "POST",
        "path": "/search",
        "body": '{"q": "{{query}}", "n": {{k}}}',
        "hits": "results[]",
        "id": "id",
        "title": "name",
        "text": ["name", "description"],
        "score": "score",
        "header_env": {"Authorization": "SHOP_AUTH"},
        "requests_per_minute": 60_000,
        "timeout_s": 20,
    }


@pytest.fixture
def olga(db, client):
    """An owner of the site, signed in."""
    user = make_user("olga", is_owner=True)
    client.force_login(user)
    return user
