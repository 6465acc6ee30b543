"""Authentication by bearer token: its scope, and the role of the person who holds it, must allow the operation."""

import time
from typing import cast

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja.errors import AuthorizationError
from ninja.security import HttpBearer
from ninja.throttling import BaseThrottle
from redis import Redis, RedisError

from annotation.access.permissions import SMALLEST, Scope, SiteScope, collection_scope, require_owner
from api.models import AccessToken
from api.tokens import find_token
from corpus.access import Action

# ADR 0091: requests are counted in Redis, for ninja's throttles keep their state in one process only.
WINDOW_S = 60
# What a token must be for, besides reading.
JUDGE, MANAGE = AccessToken.TokenScope.JUDGE, AccessToken.TokenScope.MANAGE


class Replayed(Exception):
    """A request sent again (api.idempotency): `answer` is what the first one got."""

    def __init__(self, answer: HttpResponse) -> None:
        super().__init__()
        self.answer = answer


class AccessTokenAuth(HttpBearer):
    """Authentication of an operation: a token with `scope` whose person may do `action`. Sets `request.scope`."""

    def __init__(self, action: Action, scope: str) -> None:
        super().__init__()
        self.action: Action = action
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> Scope | SiteScope | None:
        """Return what the operation works with; None for an invalid token. Raises 403 and 404."""
        row = find_token(token)
        if row is None:
            return None
        # A 403 and not a 401: the token is valid, and signing in anew would not help.
        if self.scope not in row.scopes:
            raise AuthorizationError(message=_("This token lacks the scope “%(scope)s”.") % {"scope": self.scope})
        # Whatever of Django asks for the person finds the owner of the token; a session cookie means nothing here.
        request.user = row.user
        request.access_token = row  # type: ignore[attr-defined]
        if self.action in SMALLEST:
            name = request.resolver_match.kwargs["name"] if request.resolver_match else ""
            # Whether another collection of this name exists is not for this token: a 404 for both.
            if row.collection is not None and row.collection.name != name:
                raise Http404(_("Collection not found."))
            found: Scope | SiteScope = collection_scope(row.user, self.action, name)
        else:
            if self.action == "own-site":
                if row.collection is not None:
                    raise AuthorizationError(message=_("This needs a token for all collections."))
                require_owner(row.user)
            found = SiteScope(row.user)
        request.scope = found  # type: ignore[attr-defined]
        if (kept := getattr(request, "kept_answer", None)) is not None:
            raise Replayed(kept)
        return found


def may(action: Action, scope: str = AccessToken.TokenScope.READ) -> list[AccessTokenAuth]:
    """Return an operation's `auth`: the action that pages name, and a token's scope."""
    return [AccessTokenAuth(action, scope)]


def scope_of(request: HttpRequest) -> Scope:
    """Return the Scope of an operation on a collection: who asks, and the collection."""
    return cast(Scope, request.scope)  # type: ignore[attr-defined]


class TokenThrottle(BaseThrottle):
    """Limit of QUORUM_API_PER_MINUTE requests of a token a minute; off while Redis is away."""

    def allow_request(self, request: HttpRequest) -> bool:
        """Count the request and return whether the token may still make it in this minute."""
        row: AccessToken = request.access_token  # type: ignore[attr-defined]
        # The minute is part of the key, so a new minute starts from 0 without a reset; the expiry
        # only frees the memory.
        key = f"{settings.PREFIX}api:{row.pk}:{int(time.time()) // WINDOW_S}"
        try:
            # Without limits of time every request would hang with a Redis that hangs.
            with Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1) as redis:
                counted = redis.pipeline().incr(key).expire(key, WINDOW_S).execute()[0]
        except RedisError:
            # The limit protects the server; an absent Redis is no reason to refuse everybody.
            return True
        return int(counted) <= settings.API_PER_MINUTE

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return WINDOW_S - time.time() % WINDOW_S
