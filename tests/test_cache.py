"""Django's cache in a Redis that another instance uses too."""

from django.conf import settings
from django.core.cache import cache
from redis import Redis


def test_clearing_it_leaves_what_another_instance_keeps() -> None:
    cache.set("ours", 1)
    with Redis.from_url(settings.REDIS_URL) as client:
        client.set(f"{settings.PREFIX}-other:1:theirs", 2)
        cache.clear()
        assert cache.get("ours") is None
        assert client.getdel(f"{settings.PREFIX}-other:1:theirs") == b"2"
