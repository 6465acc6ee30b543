"""Who asks, and whether they may: a bearer token with the scope, held by a person whose role allows the action."""

import time
from typing import cast

from django.conf import settings
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from ninja.errors import AuthorizationError
from ninja.security import HttpBearer
from ninja.throttling import BaseThrottle
from redis import Redis, RedisError

from annotation.permissions import SMALLEST, Scope, SiteScope, collection_scope, require_owner
from api.models import AccessToken
from api.tokens import find_token
from corpus.access import Action

WINDOW_S = 60


class AccessTokenAuth(HttpBearer):
    """Lets who may do `action` run an operation, by a token with `scope`; its Scope stands on the request."""

    def __init__(self, action: Action, scope: str) -> None:
        super().__init__()
        self.action: Action = action
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> Scope | SiteScope | None:
        """Return what the operation may work with; None where the token is not valid. Raises 403 and 404."""
        row = find_token(token)
        if row is None:
            return None
        if self.scope not in row.scopes:
            raise AuthorizationError(message=_("This token lacks the scope “%(scope)s”.") % {"scope": self.scope})
        request.user = row.user
        request.access_token = row  # type: ignore[attr-defined]
        found = self._find_scope(request, row)
        request.scope = found  # type: ignore[attr-defined]
        return found

    def _find_scope(self, request: HttpRequest, row: AccessToken) -> Scope | SiteScope:
        if self.action in SMALLEST:
            name = request.resolver_match.kwargs["name"] if request.resolver_match else ""
            if row.collection is not None and row.collection.name != name:
                raise Http404(_("Collection not found."))
            return collection_scope(row.user, self.action, name)
        if self.action == "own-site":
            if row.collection is not None:
                raise AuthorizationError(message=_("This needs a token for all collections."))
            require_owner(row.user)
        return SiteScope(row.user)


def may(action: Action, scope: str = AccessToken.TokenScope.READ) -> list[AccessTokenAuth]:
    """What an operation's `auth` says: the action, as on pages, and the token's scope."""
    return [AccessTokenAuth(action, scope)]


def scope_of(request: HttpRequest) -> Scope:
    """The scope of an operation on a collection."""
    return cast(Scope, request.scope)  # type: ignore[attr-defined]


class TokenThrottle(BaseThrottle):
    """At most QUORUM_API_PER_MINUTE requests of a token in a minute; without Redis nobody is held up."""

    def allow_request(self, request: HttpRequest) -> bool:
        """Count the request; False where the token has had its share."""
        row: AccessToken = request.access_token  # type: ignore[attr-defined]
        key = f"{settings.PREFIX}api:{row.pk}:{int(time.time()) // WINDOW_S}"
        try:
            with Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1) as redis:
                counted = redis.pipeline().incr(key).expire(key, WINDOW_S).execute()[0]
        except RedisError:
            return True
        return int(counted) <= settings.API_PER_MINUTE

    def wait(self) -> float:
        """Seconds until the next window."""
        return WINDOW_S - time.time() % WINDOW_S
