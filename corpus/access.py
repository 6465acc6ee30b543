"""Permissions of views in apps that must not import annotation (docs/adr/0012).

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

# The action of a view decides who may see it, by the table in annotation/access/permissions.py.
Action = Literal["public", "site", "own-site", "own", "member", "judge", "answer", "adjudicate", "results", "admin"]

View = Callable[..., HttpResponseBase]
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def needed_action(name: Action, method: str | None) -> Action:
    """Return what a request needs: people who may only read results may send nothing to their pages."""
    return "admin" if name == "results" and method not in SAFE_METHODS else name


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
    """A membership, with the assessor under whose name the member judges."""

    @property
    def assessor(self) -> Assessor: ...


class AccessJudgeScope(AccessScope, Protocol):
    """A page of the action `judge`, which only members may open."""

    @property
    def member(self) -> AccessMember: ...


def action(name: Action, *methods: str) -> Callable[[View], View]:
    """Return a decorator that checks the permission for an action and calls `view(request, scope, ...)`."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            guard = import_string(settings.ACCESS)(name, *methods)(view)
            return cast(HttpResponseBase, guard(request, *args, **kwargs))

        # Read by the test of all permissions.
        guarded.action = name  # type: ignore[attr-defined]
        return guarded

    return decorate


def administered(user: Person) -> QuerySet[Collection]:
    """Return the collections that this person administers."""
    module = settings.ACCESS.rpartition(".")[0]
    return cast("QuerySet[Collection]", import_string(f"{module}.administered_collections")(user))
