"""The client's entry point: a site of Quorum."""

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import httpx2

from quorum_client.collection import Collection
from quorum_client.records import CollectionOut
from quorum_client.retries import RetryPolicy
from quorum_client.transport import Transport


class Quorum:
    """A site of Quorum, with an access token (Account > Access tokens)."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        retries: RetryPolicy | None = None,
        timeout: float = 60.0,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.transport = Transport(
            base_url, token, retries=retries or RetryPolicy(), timeout=timeout, transport=transport
        )

    @classmethod
    def from_environment(cls, **options: Any) -> "Quorum":
        """Return a client for QUORUM_URL with QUORUM_TOKEN."""
        missing = [name for name in ("QUORUM_URL", "QUORUM_TOKEN") if not os.environ.get(name)]
        if missing:
            raise ValueError(f"set {' and '.join(missing)}")
        return cls(os.environ["QUORUM_URL"], os.environ["QUORUM_TOKEN"], **options)

    def collections(self) -> Sequence[CollectionOut]:
        """List the collections that the token reaches, by name."""
        return self.transport.read(tuple[CollectionOut, ...], "collections")

    def collection(self, name: str) -> Collection:
        """Return a collection by its name, without a request."""
        return Collection(self.transport, name)

    def create_collection(self, **fields: Any) -> Collection:
        """Create a collection (`name`, `title`, `grades` ...), with an owner's token."""
        return self.collection(self.transport.post(CollectionOut, "collections", fields).name)

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Send any request of docs/developers.md and return its response: JSON, else text; None where it is empty.

        `path` is below /api/v1/; `params` is the query string. A POST has an Idempotency-Key, so that retries do
        not repeat it; with `is_repeatable=False` it has none and is not retried.
        """
        return self.transport.request(method, path, body, **options)

    def close(self) -> None:
        """Close the connections."""
        self.transport.close()

    def __enter__(self) -> "Quorum":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
