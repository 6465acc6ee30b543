"""Permissions: one decorator names the action on every view.

| action      | who                                                                       |
|-------------|---------------------------------------------------------------------------|
| public      | anybody                                                                   |
| site        | anybody signed in                                                         |
| own-site    | owners of the site                                                        |
| member      | any member of the collection, and owners                                  |
| judge       | members from annotator up                                                 |
| answer      | members from adjudicator up, and owners                                   |
| adjudicate  | members from adjudicator up, and owners who are members                   |
| results     | viewers and admins of the collection, and owners; other methods than GET  |
|             | and HEAD only admins and owners                                           |
| admin       | admins of the collection, and owners                                      |
| own         | owners of the site, on a page of the collection                           |

A collection of which the visitor is not a member does not exist for them (404). A role that is too
low is refused (403). Without a session the answer is the sign-in page.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar, get_args
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, resolve_url
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from annotation.access import unsent_forms
from annotation.access.languages import speak_to
from annotation.models import Membership, Role, User
from corpus.access import Action, View, needed_action
from corpus.models import Collection

# The roles for each action in a collection; a refusal names the first.
ALLOWED: dict[Action, tuple[Role, ...]] = {
    "member": tuple(Role),
    "judge": (Role.ANNOTATOR, Role.ADJUDICATOR, Role.ADMIN),
    "answer": (Role.ADJUDICATOR, Role.ADMIN),
    "adjudicate": (Role.ADJUDICATOR, Role.ADMIN),
    "results": (Role.ADMIN, Role.VIEWER),
    "admin": (Role.ADMIN,),
    "own": (Role.ADMIN,),
}

# Actions that store a grade. They need a membership, because each grade belongs to its assessor.
AS_MEMBER: frozenset[Action] = frozenset({"judge", "adjudicate"})


@dataclass(frozen=True, slots=True)
class PublicScope:
    """The visitor of a page that is open to anybody; `user` is None where they are not signed in."""

    user: User | None
    collection: ClassVar[None] = None
    membership: ClassVar[None] = None
    role: ClassVar[None] = None


@dataclass(frozen=True, slots=True)
class SiteScope(PublicScope):
    """The visitor of a page outside any collection."""

    user: User

    def may(self, action: Action) -> bool:
        """Return whether the user may do this outside any collection."""
        return action == "site" or (action == "own-site" and self.user.is_owner)


@dataclass(frozen=True, slots=True)
class Scope:
    """The visitor of a page of a collection. `membership` is None for owners who are not members."""

    user: User
    collection: Collection
    membership: Membership | None
    role: Role  # The visitor's role here; owners of the site count as admins.

    def may(self, action: Action) -> bool:
        """Return whether the user may do the action in this collection."""
        if action in AS_MEMBER and self.membership is None:
            return False
        return self.role in ALLOWED[action] and (action != "own" or self.user.is_owner)

    def may_on_site(self, action: Action) -> bool:
        """Return whether the user may do the action on a page of the site, or of this collection."""
        if action in ALLOWED:
            return self.may(action)
        return action in ("public", "site") or self.user.is_owner

    @property
    def may_admin(self) -> bool:
        """Return whether the user may see and change everything in this collection."""
        return self.role >= Role.ADMIN

    @property
    def may_read_results(self) -> bool:
        """Return whether the user may see the results of this collection, as admins and viewers do."""
        return self.role in ALLOWED["results"]

    @property
    def may_judge(self) -> bool:
        """Return whether the user is a member under whose assessor grades are stored, which viewers are not."""
        return self.may("judge")

    @property
    def may_adjudicate(self) -> bool:
        """Return whether the user may resolve conflicts of this collection."""
        return self.may("adjudicate")

    @property
    def member(self) -> Membership:
        """Return the membership, in views whose action needs one (judge, adjudicate)."""
        if self.membership is None:
            raise PermissionDenied(_("You are not a member of this collection."))
        return self.membership

    def find_member(self, member: int) -> Membership:
        """Return the membership of this collection with this id. Raises Http404."""
        memberships = Membership.objects.select_related("user", "collection")
        return get_object_or_404(memberships, pk=member, collection=self.collection)


def action(name: Action, *methods: str) -> Callable[[View], View]:
    """Name what a view does, and the methods that it answers (none named: all).

    Collection views take the URL's `name`; all are called `view(request, scope, ...)`.
    """
    if name not in get_args(Action):
        raise ValueError(f"unknown action {name!r}")

    def decorate(view: View) -> View:
        if methods:
            view = require_http_methods(list(methods))(view)

        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            needed = needed_action(name, request.method)
            scope = scope_of(request, needed, kwargs)
            if scope is None:
                return redirect_to_sign_in(request)
            request.scope = scope  # type: ignore[attr-defined]  # error pages show the same navigation
            response = view(request, scope, *args, **kwargs)
            # Out of every cache, the browser's too: a shared computer shows nothing after sign-out.
            if name != "public" and not response.has_header("Cache-Control"):
                patch_cache_control(response, private=True, no_store=True)
            return response

        guarded.action = name  # type: ignore[attr-defined]  # the permission test reads it
        return guarded

    return decorate


def administered_collections(user: User) -> QuerySet[Collection]:
    """Return the collections that a user administers: all for owners, else as admin."""
    collections = Collection.objects.order_by("name")
    if user.is_owner:
        return collections
    return collections.filter(memberships__user=user, memberships__is_active=True, memberships__role__gte=Role.ADMIN)


def guard_library_view(name: Action, view: View) -> View:
    """Name the action of a view that is not ours (allauth's), which takes no scope."""

    def call(request: HttpRequest, scope: object, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return view(request, *args, **kwargs)

    return action(name)(call)


def scope_of(request: HttpRequest, name: Action, kwargs: dict[str, Any]) -> PublicScope | SiteScope | Scope | None:
    """Return the scope of a view, None before the sign-in; removes the collection's `name` from `kwargs`."""
    user = request.user if request.user.is_authenticated else None
    if user is not None:
        speak_to(user, request)
        if request.method == "POST":
            unsent_forms.forget_sent(request)
    if name in ALLOWED:
        collection = kwargs.pop("name")
        return None if user is None else collection_scope(user, name, collection)
    if name == "public":
        return PublicScope(user)
    if user is None:
        return None
    if name == "own-site":
        require_owner(user)
    return SiteScope(user)


def require_owner(user: User) -> None:
    """Raise PermissionDenied unless the user is an owner of the site."""
    if not user.is_owner:
        raise PermissionDenied(_("Only owners of this site can do this."))


def collection_scope(user: User, name: Action, collection: str) -> Scope:
    """Return the scope of a user who does the action `name` in a collection. Raises Http404 and PermissionDenied."""
    membership = (
        Membership.objects.select_related("collection", "assessor")
        .filter(user=user, collection__name=collection, is_active=True)
        .first()
    )
    if membership is not None:
        # Or Django would read the user again.
        membership.user = user
        role = Role.ADMIN if user.is_owner else Role(membership.role)
        scope = Scope(user, membership.collection, membership, role)
    else:
        # The same answer as for a name that does not exist, so that strangers cannot find out names of collections.
        collection_row = Collection.objects.filter(name=collection).first() if user.is_owner else None
        if collection_row is None:
            raise Http404(_("Collection not found."))
        scope = Scope(user, collection_row, None, Role.ADMIN)
    if scope.role not in ALLOWED[name]:
        message = _("This requires the role %(role)s; your role here is %(yours)s.")
        raise PermissionDenied(message % {"role": ALLOWED[name][0].label, "yours": scope.role.label})
    if name == "own":
        require_owner(user)
    if name in AS_MEMBER and membership is None:
        raise PermissionDenied(
            _("You are not a member of this collection. Join it on the People page before you judge.")
        )
    return scope


def redirect_to_sign_in(request: HttpRequest) -> HttpResponse:
    """Redirect to the sign-in page, which leads back afterwards; for HTMX the whole page is replaced."""
    htmx = bool(request.headers.get("HX-Request"))
    back = request.headers.get("HX-Current-URL", "") if htmx else request.get_full_path()
    address = resolve_url(settings.LOGIN_URL)
    # A form is not sent again automatically; its fields are kept until after the sign-in.
    if not htmx and request.method == "POST":
        back = reverse("unsent_form") if unsent_forms.keep(request) else unsent_forms.page_of(request)
    if htmx or request.method in {"GET", "HEAD", "POST"}:
        parts = urlsplit(back)
        # Only path and query, so that an address of another host in the header is not followed.
        address += "?" + urlencode({"next": parts.path + (f"?{parts.query}" if parts.query else "")})
    if htmx:
        return HttpResponse(status=401, headers={"HX-Redirect": address})
    return HttpResponseRedirect(address)
