"""Authentication by bearer token: the token's scope and its person's role must allow the operation."""

import time
from typing import cast

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja.errors import AuthorizationError
from ninja.security import HttpBearer
from ninja.throttling import BaseThrottle
from redis import Redis, RedisError

from annotation.access.permissions import ALLOWED, Scope, SiteScope, collection_scope, require_owner
from api.models import AccessToken
from api.tokens import find_token
from corpus.access import Action, needed_action

# ADR 0091: requests are counted in Redis, because ninja's throttles count only in their own process.
WINDOW_S = 60
# Scopes that a token needs for more than reading.
JUDGE, MANAGE = AccessToken.TokenScope.JUDGE, AccessToken.TokenScope.MANAGE


class Replayed(Exception):
    """A repeated request (api.idempotency). `answer`: the response to the first one."""

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
        """Return the scope of the operation; None for an invalid token. Raises AuthorizationError (403) and Http404."""
        row = find_token(token)
        if row is None:
            return None
        # 403 instead of 401: the token is valid, and signing in again would not help.
        if self.scope not in row.scopes:
            raise AuthorizationError(message=_("This token lacks the scope “%(scope)s”.") % {"scope": self.scope})
        # `request.user` is the token's owner; session cookies are ignored.
        request.user = row.user
        request.access_token = row  # type: ignore[attr-defined]
        if self.action in ALLOWED:
            name = request.resolver_match.kwargs["name"] if request.resolver_match else ""
            # 404 whether or not it exists: that is not for this token to know.
            if row.collection is not None and row.collection.name != name:
                raise Http404(_("Collection not found."))
            needed = needed_action(self.action, request.method)
            scope: Scope | SiteScope = collection_scope(row.user, needed, name)
        else:
            if self.action == "own-site":
                if row.collection is not None:
                    raise AuthorizationError(message=_("This needs a token for all collections."))
                require_owner(row.user)
            scope = SiteScope(row.user)
        request.scope = scope  # type: ignore[attr-defined]
        if (stored := getattr(request, "stored_answer", None)) is not None:
            raise Replayed(stored)
        return scope


def may(action: Action, scope: str = AccessToken.TokenScope.READ) -> list[AccessTokenAuth]:
    """Return an operation's `auth`: the action, as for pages, and the token's scope."""
    return [AccessTokenAuth(action, scope)]


def scope_of(request: HttpRequest) -> Scope:
    """Return the Scope of an operation on a collection: the person and the collection."""
    return cast(Scope, request.scope)  # type: ignore[attr-defined]


class TokenThrottle(BaseThrottle):
    """Limit of QUORUM_API_PER_MINUTE requests per token; off while Redis is not reachable."""

    def allow_request(self, request: HttpRequest) -> bool:
        """Count the request and return whether it is within the limit of this minute."""
        row: AccessToken = request.access_token  # type: ignore[attr-defined]
        # The minute is part of the key, so that each starts at 0; the expiry only frees memory.
        key = f"{settings.PREFIX}api:{row.pk}:{int(time.time()) // WINDOW_S}"
        try:
            # Without timeouts a Redis that hangs would make every request hang.
            with Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1) as redis:
                counted = redis.pipeline().incr(key).expire(key, WINDOW_S).execute()[0]
        except RedisError:
            # Without Redis requests are allowed rather than all refused.
            return True
        return int(counted) <= settings.API_PER_MINUTE

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return WINDOW_S - time.time() % WINDOW_S
