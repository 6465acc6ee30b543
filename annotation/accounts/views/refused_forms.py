"""Forms that could not be taken: sent after the session had ended, or without a valid token against forgery."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.middleware.csrf import REASON_BAD_ORIGIN, REASON_NO_CSRF_COOKIE
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_http_methods

from annotation import unsent_forms
from annotation.permissions import SiteScope, action

# Of Django's own sentence, up to the origin that it names.
BAD_ORIGIN = REASON_BAD_ORIGIN.partition("%s")[0]


@action("site")
@require_http_methods(["GET", "POST"])
def unsent_form(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Offer a form that was sent after the session had ended; a POST discards it."""
    if request.method == "POST":
        kept = unsent_forms.read(request)
        unsent_forms.forget(request)
        return redirect(kept.page if kept else "home")
    return render(request, "accounts/unsent_form.html", {"scope": scope, "kept": unsent_forms.read(request)})


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Say why a form was refused, and what helps: the cookie, the page, or the setting of whoever runs the site."""
    origin = request.META.get("HTTP_ORIGIN", "")
    context = {
        "origin": origin if reason.startswith(BAD_ORIGIN) and origin != "null" else "",
        "no_cookie": reason == REASON_NO_CSRF_COOKIE,
        "cookie": settings.CSRF_COOKIE_NAME,
    }
    return HttpResponseForbidden(render_to_string("403_csrf.html", context, request))
