"""Sign-in by an OpenID Connect provider (OpenID Connect Core 1.0, authorization code flow with PKCE).

A connection joins the provider's subject to an account. It is made on the account page, or together
with an account that an invitation creates. Email addresses never identify an account. Of the
provider's claims only the subject and a display name for the account page are stored.
"""

import logging
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, _build_apps_from_settings
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialAccount, SocialApp
from allauth.socialaccount.providers import registry
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse

from annotation.access.audit_log.recording import record
from annotation.models import Invitation, User
from annotation.people.accounts import members
from corpus.errors import BadInput
from jobs.connections import without_connection

logger = logging.getLogger(__name__)

# Not in INSTALLED_APPS, because loading it takes every command a fifth of a second.
registry.register(OpenIDConnectProvider)

KEPT_CLAIMS = ("sub", "preferred_username", "name")
# Signatures with a key pair; an id_token signed with a shared secret, or not at all, is refused.
ALGORITHMS = {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
# The session's key of the invitation with which a visitor goes to the provider.
INVITED = "invitation"


class SingleSignOnAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """allauth's adapter with providers from the settings only, and accounts for invited people only."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """Return the providers of the settings, without those in the database, where secrets would be stored."""
        apps_by_provider = _build_apps_from_settings(provider=provider, client_id=client_id)
        return [app for apps in apps_by_provider.values() for app in apps]

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Return whether the visitor came with an open invitation."""
        return invitation_of(request) is not None

    def populate_user(self, request: HttpRequest, sociallogin: Any, data: dict[str, Any]) -> User:
        """Set a free user name similar to the provider's; the email address is not stored."""
        user: User = sociallogin.user
        names = [str(data.get(name) or "") for name in ("username", "name")]
        user.username = get_adapter().generate_unique_username([*names, "person"])
        return user

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        """Create account, connection and membership in one transaction. Raises BadInput for a closed invitation."""
        invitation = invitation_of(request)
        if invitation is None:
            raise BadInput("This invitation is closed: ask for a new one")
        with transaction.atomic():
            user: User = super().save_user(request, sociallogin, form)
            record(user, "account.made", invitation.collection, way="single sign-on")
            members.accept_invitation(invitation=invitation, user=user)
        request.session.pop(INVITED, None)
        sociallogin.state["next"] = members.home_of(invitation)
        return user

    def get_requests_session(self) -> Any:
        """Return a session whose requests to the provider, which may take seconds, hold no database connection."""
        session = super().get_requests_session()
        send = session.request

        def send_without_connection(*args: Any, **kwargs: Any) -> Any:
            with without_connection():
                return send(*args, **kwargs)

        session.request = send_without_connection
        return session

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: SocialAccount) -> str:
        """Return the account page, which shows the connection."""
        return reverse("account")

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None
    ) -> None:
        """Log the cause without the provider's answer and its tokens; the page does not show it."""
        logger.warning("Sign-in by the provider failed: %s %s", error or "", type(exception).__name__)


class OpenIDConnect(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """The OpenID Connect flow, which takes the identity only from a verified id_token."""

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any) -> Any:
        """Return the login of the person in the id_token. Raises OAuth2Error for an untrusted id_token."""
        id_token = str(kwargs["response"].get("id_token") or "")
        if not id_token:
            raise OAuth2Error("no id_token")
        import jwt

        try:
            algorithm = jwt.get_unverified_header(id_token).get("alg")
        except jwt.PyJWTError:
            algorithm = None
        if algorithm not in ALGORITHMS:
            raise OAuth2Error("the id_token is not signed with a key pair")
        # Always checks signature, issuer, audience and expiry; allauth skips the signature of tokens received by TLS.
        token_claims = jwtkit.verify_and_decode(
            credential=id_token,
            keys_url=self.openid_config["jwks_uri"],
            issuer=self.openid_config["issuer"],
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )
        identity = {name: str(token_claims[name]) for name in KEPT_CLAIMS if token_claims.get(name)}
        return self.get_provider().sociallogin_from_response(request, {"id_token": identity})


def name_of_provider() -> str:
    """Return the display name of the provider; "" without a provider."""
    apps = settings.SOCIALACCOUNT_PROVIDERS.get("openid_connect", {}).get("APPS", [])
    return str(apps[0]["name"]) if apps else ""


def invitation_of(request: HttpRequest) -> Invitation | None:
    """Return the open invitation with which this visitor came, if any."""
    token = request.session.get(INVITED)
    invitation = Invitation.objects.select_related("collection").filter(token=token).first() if token else None
    return invitation if invitation is not None and not members.why_closed(invitation) else None


@transaction.atomic
def disconnect_provider(user: User) -> bool:
    """Disconnect an account from the provider; return whether it was connected. Raises BadInput without a password."""
    connection = SocialAccount.objects.filter(user=user).first()
    if connection is None:
        return False
    if not user.has_usable_password():
        raise BadInput("You have no password yet, and would have no way in: ask an owner for a link to set one")
    connection.delete()
    record(user, "provider.disconnected")
    return True
