"""Pages of the API reference. Open to everybody, like the document that they show."""

from functools import lru_cache

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import get_script_prefix
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from ninja import NinjaAPI

from annotation.access.permissions import PublicScope, action
from api.reference.document import Reference, Resource

CALLERS = {
    "site": gettext_lazy("everyone with an account"),
    "own-site": gettext_lazy("owners of the site"),
    "member": gettext_lazy("members of the collection"),
    "judge": gettext_lazy("annotators, adjudicators and admins"),
    "adjudicate": gettext_lazy("adjudicators and admins"),
    "admin": gettext_lazy("admins"),
}
"""Who may call an operation, by the action that it is."""
STATUSES = {
    400: gettext_lazy("The request cannot be read."),
    401: gettext_lazy("There is no valid token."),
    403: gettext_lazy("The token's scope or your role does not allow it."),
    404: gettext_lazy("It is not there, was deleted, or is not for you."),
    409: gettext_lazy("Its state has changed: the detail says what happened."),
    412: gettext_lazy("If-Match names an earlier state. Read it again."),
    413: gettext_lazy("It is larger than this site accepts."),
    422: gettext_lazy("A field is wrong, or the collection does not allow it."),
    429: gettext_lazy("Too many requests in a minute. Wait for the seconds in Retry-After."),
    503: gettext_lazy("The database or another service is not available. Try again."),
}
"""What an error means, by its status."""


@lru_cache(maxsize=1)
def read_resources(api: NinjaAPI, prefix: str) -> dict[str, Resource]:
    """Return the resources of the API, read once for the life of the process."""
    return Reference(api.get_openapi_schema(path_prefix=prefix)).resources


@action("public", "GET")
def index(request: HttpRequest, scope: PublicScope, api: NinjaAPI) -> HttpResponse:
    """Show how requests are made, and all resources with their operations."""
    return _render(request, "api/reference.html", scope, read_resources(api, _prefix()))


@action("public", "GET")
def resource(request: HttpRequest, scope: PublicScope, api: NinjaAPI, resource: str) -> HttpResponse:
    """Show the operations on one resource."""
    resources = read_resources(api, _prefix())
    if resource not in resources:
        raise Http404(_("Not found."))
    return _render(request, "api/resource.html", scope, resources, resource=resources[resource])


def _prefix() -> str:
    return f"{get_script_prefix()}api/v1/"


def _render(
    request: HttpRequest, template: str, scope: PublicScope, resources: dict[str, Resource], **more: object
) -> HttpResponse:
    site = request.build_absolute_uri(get_script_prefix()).rstrip("/")
    context = {"scope": scope, "resources": resources, "callers": CALLERS, "statuses": STATUSES, "site": site, **more}
    return render(request, template, context)
