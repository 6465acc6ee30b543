"""How pages look and speak, chosen by anybody: language and contrast."""

from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import Resolver404, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from annotation import languages
from annotation.permissions import PublicScope, action


@action("public")
@require_POST
def display(request: HttpRequest, scope: PublicScope) -> HttpResponse:
    """Keep the choice and go back to the page where it was made."""
    response = HttpResponseRedirect(_safe_return_url(request), status=303)
    contrast = request.POST.get("contrast")
    languages.save_display_choice(scope.user, response, language=request.POST.get("language", ""), contrast=contrast)
    return response


def _safe_return_url(request: HttpRequest) -> str:
    """The page of this site that the form names, or the start page."""
    wanted = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure()):
        return reverse("home")
    try:
        resolve(urlsplit(wanted).path)
    except Resolver404:
        return reverse("home")
    return wanted
