"""A client of the API, with a token of a person."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from annotation.models import User
from api.tokens import make_token
from corpus.models import Collection

Call = Callable[..., Any]
EVERY = ("read", "judge", "manage")


@pytest.fixture
def call(client: Client) -> Call:
    """`call(user, "GET", "collections/x/pairs", json, collection=, scopes=, **headers)` answers with the response."""
    tokens: dict[object, str] = {}

    def request(
        user: User | None,
        method: str,
        path: str,
        body: object = None,
        *,
        collection: Collection | None = None,
        scopes: tuple[str, ...] = EVERY,
        **headers: str,
    ) -> Any:
        if user is not None:
            key = user.pk, collection and collection.pk, scopes
            if key not in tokens:
                tokens[key] = make_token(user, collection, name="test", scopes=scopes, days=1)[1]
            headers["Authorization"] = f"Bearer {tokens[key]}"
        sent = {} if body is None else {"data": body, "content_type": "application/json"}
        return (
            client.generic(method, f"/api/v1/{path}", headers=headers)
            if not sent
            else getattr(client, method.lower())(f"/api/v1/{path}", headers=headers, **sent)
        )

    return request
