"""Naming the action of a view, for apps that stand below or beside the one that knows people (docs/adr/0020).

Views of `training` and `benchmark` need the same deny-by-default decorator as those of `annotation`, which they must
not import. Like Django's AUTH_USER_MODEL, the setting ACCESS names the implementation: annotation.permissions.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, Protocol, cast

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string

from corpus.models import Collection

# What a view does, and so who may see it: the table stands in annotation/permissions.py.
Action = Literal["public", "site", "own-site", "member", "judge", "adjudicate", "admin"]

View = Callable[..., HttpResponseBase]


class Person(Protocol):
    """Somebody signed in."""

    pk: Any
    username: str


class AccessSiteScope(Protocol):
    """A page of the site, outside any collection."""

    @property
    def user(self) -> Person:
        """Who asks."""


class AccessScope(AccessSiteScope, Protocol):
    """A page of a collection."""

    @property
    def collection(self) -> Collection:
        """The collection of the address."""

    @property
    def may_admin(self) -> bool:
        """Whether the user may see and change everything of this collection."""


def action(name: Action) -> Callable[[View], View]:
    """Name what a view does. Collection views take the URL's `name`; all are called `view(request, scope, ...)`."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            guard = import_string(settings.ACCESS)(name)(view)
            return cast(HttpResponseBase, guard(request, *args, **kwargs))

        guarded.action = name  # type: ignore[attr-defined]  # the permission test reads it
        return guarded

    return decorate


def administered(user: Person) -> QuerySet[Collection]:
    """The collections of which this person may see and change everything, for pages of the site that name several."""
    module = settings.ACCESS.rpartition(".")[0]
    return cast("QuerySet[Collection]", import_string(f"{module}.administered_collections")(user))
