"""Permissions of views in apps that must not import the one that knows people (docs/adr/0012).

Like Django's AUTH_USER_MODEL, the setting ACCESS names the implementation: annotation.access.permissions.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, Protocol, cast

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string

from corpus.models import Assessor, Collection

# What a view does, and so who may see it: the table stands in annotation/access/permissions.py.
Action = Literal["public", "site", "own-site", "own", "member", "judge", "adjudicate", "admin"]

View = Callable[..., HttpResponseBase]


class Person(Protocol):
    """A user who is signed in."""

    pk: Any
    username: str


class AccessSiteScope(Protocol):
    """A page of the site, outside any collection."""

    @property
    def user(self) -> Person: ...
    def may(self, action: Action, /) -> bool: ...


class AccessScope(AccessSiteScope, Protocol):
    """A page of a collection."""

    @property
    def collection(self) -> Collection: ...
    @property
    def may_admin(self) -> bool: ...


class AccessMember(Protocol):
    """Protocol of a membership: the assessor under whose name the member judges."""

    @property
    def assessor(self) -> Assessor: ...


class AccessJudgeScope(AccessScope, Protocol):
    """A page of the action judge: who asks is a member."""

    @property
    def member(self) -> AccessMember: ...


def action(name: Action, *methods: str) -> Callable[[View], View]:
    """Name the action of a view, which is called as `view(request, scope, ...)` by who may do it, and its methods."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            guard = import_string(settings.ACCESS)(name, *methods)(view)
            return cast(HttpResponseBase, guard(request, *args, **kwargs))

        guarded.action = name  # type: ignore[attr-defined]  # the permission test reads it
        return guarded

    return decorate


def administered(user: Person) -> QuerySet[Collection]:
    """Return the collections of which this person may see and change everything."""
    module = settings.ACCESS.rpartition(".")[0]
    return cast("QuerySet[Collection]", import_string(f"{module}.administered_collections")(user))
