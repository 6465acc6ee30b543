"""Signing in by the OpenID Connect provider: the way there, the way back, and what can go wrong."""

from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from requests import RequestException

from annotation.accounts import members, single_sign_on
from annotation.models import Invitation
from annotation.permissions import PublicScope, action
from corpus.errors import BadInput


@action("public")
@require_http_methods(["GET", "POST"])
def login(request: HttpRequest, scope: PublicScope, provider_id: str) -> HttpResponse:
    """Send the visitor to the provider's page. A GET asks first, so that no other site can start a sign-in here."""
    return _of_provider(request, scope, OAuth2LoginView, provider_id)


@action("public")
@require_GET
def callback(request: HttpRequest, scope: PublicScope, provider_id: str) -> HttpResponse:
    """Complete a sign-in when the provider sends the visitor back with a code, which is exchanged for an id_token."""
    return _of_provider(request, scope, OAuth2CallbackView, provider_id)


@action("public")
@require_POST
def start_invited_login(request: HttpRequest, scope: PublicScope, token: str) -> HttpResponse:
    """Accept an invitation with an account of the provider."""
    invitation = get_object_or_404(Invitation, token=token)
    if not single_sign_on.is_offered() or members.why_closed(invitation):
        return redirect("invitation", token)
    request.session[single_sign_on.INVITED] = token
    try:
        provider = single_sign_on.SingleSignOnAdapter(request).get_provider(request, "openid_connect")
        # Whoever has an account already comes back to the invitation, and accepts it with that account.
        response: HttpResponse = provider.redirect(request, process="login", next_url=f"/invitations/{token}/")
    except (RequestException, KeyError, ValueError):
        return _render_provider_error(request, scope)
    return response


@action("public")
@require_GET
def cancelled(request: HttpRequest, scope: PublicScope) -> HttpResponse:
    """Show the sign-in page to who turned back at the provider's page."""
    return redirect("account_login")


def _of_provider(request: HttpRequest, scope: PublicScope, view: type, provider_id: str) -> HttpResponse:
    try:
        adapter = single_sign_on.OpenIDConnect(request, provider_id)
        response: HttpResponse = view.adapter_view(adapter)(request)  # type: ignore[attr-defined]  # allauth's
    # allauth looks the provider up by the name in the address, which anybody can type.
    except SocialApp.DoesNotExist:
        raise Http404("No such provider.") from None
    except BadInput:
        return redirect("account_login")
    except (RequestException, KeyError, ValueError):
        return _render_provider_error(request, scope)
    return response


def _render_provider_error(request: HttpRequest, scope: PublicScope) -> HttpResponse:
    """Say that the provider does not answer, or not in its language."""
    return render(request, "socialaccount/authentication_error.html", {"scope": scope}, status=502)
