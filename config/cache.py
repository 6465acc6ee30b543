"""Django's cache in Redis, with one client for each thread (Django keeps one cache for each)."""

from functools import cached_property
from typing import Any

from django.core.cache.backends.redis import RedisCache, RedisCacheClient


class OneClient(RedisCacheClient):
    """Django makes a new client for each call, which costs more than the call."""

    @cached_property
    def _the_client(self) -> Any:
        return super().get_client(write=True)

    def get_client(self, key: Any = None, *, write: bool = False) -> Any:
        """The one client. There is one server, so reading and writing go to the same."""
        return self._the_client


class Cache(RedisCache):
    """The backend named in the settings."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = OneClient

    def clear(self) -> None:
        """Remove all that this instance keeps in Redis; Django would remove what others keep on the server as well."""
        client = self._cache.get_client(write=True)
        if keys := list(client.scan_iter(f"{self.key_prefix}:*", count=1000)):
            client.delete(*keys)
