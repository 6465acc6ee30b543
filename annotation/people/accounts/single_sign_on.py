"""Sign-in by an OpenID Connect provider (OpenID Connect Core 1.0, authorization code flow with PKCE).

A connection joins the provider's subject to an account: made by the person on the account page, or
together with the account when an invitation is open. Addresses never decide who somebody is.
Nothing that the provider tells is kept but the subject and the name by which the account page calls
the connection.
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

# Not by INSTALLED_APPS, from where every command and request would load it: a fifth of a second.
registry.register(OpenIDConnectProvider)

KEPT_CLAIMS = ("sub", "preferred_username", "name")
# Signatures with a key pair. An id_token signed with a shared secret, or not at all, is refused.
ALGORITHMS = {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
# In the session: the link by which somebody came who goes to the provider now.
INVITED = "invitation"


class SingleSignOnAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Providers come from the settings alone; accounts are made for those who were invited."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """The providers of the environment. allauth would look into the database too, where a secret could lie."""
        found = _build_apps_from_settings(provider=provider, client_id=client_id)
        return [app for apps in found.values() for app in apps]

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Return whether the visitor came by an invitation that is still open."""
        return invitation_of(request) is not None

    def populate_user(self, request: HttpRequest, sociallogin: Any, data: dict[str, Any]) -> User:
        """A free user name like the provider's; no address is taken over."""
        user: User = sociallogin.user
        wanted = [str(data.get(name) or "") for name in ("username", "name")]
        user.username = get_adapter().generate_unique_username([*wanted, "person"])
        return user

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        """The account, the connection and the membership, or nothing of them; BadInput when the invitation closed."""
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
        """Return what asks the provider, which may take seconds, without a database connection."""
        session = super().get_requests_session()
        ask = session.request

        def ask_provider(*args: Any, **kwargs: Any) -> Any:
            with without_connection():
                return ask(*args, **kwargs)

        session.request = ask_provider
        return session

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: SocialAccount) -> str:
        """The account page shows the connection."""
        return reverse("account")

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None
    ) -> None:
        """The page says little; the log says what was wrong, without the answer and its tokens."""
        logger.warning("Sign-in by the provider failed: %s %s", error or "", type(exception).__name__)


class OpenIDConnect(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """The flow, with the identity taken from a verified id_token and from nothing else."""

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any) -> Any:
        """Return the login of the person whom the id_token names. Raises OAuth2Error for one not to be trusted."""
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
        # Signature, issuer, audience and expiry, always: allauth skips the first where TLS brought the token.
        claims = jwtkit.verify_and_decode(
            credential=id_token,
            keys_url=self.openid_config["jwks_uri"],
            issuer=self.openid_config["issuer"],
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )
        kept = {name: str(claims[name]) for name in KEPT_CLAIMS if claims.get(name)}
        return self.get_provider().sociallogin_from_response(request, {"id_token": kept})


def name_of_provider() -> str:
    """The name of the provider on buttons; "" when there is none."""
    apps = settings.SOCIALACCOUNT_PROVIDERS.get("openid_connect", {}).get("APPS", [])
    return str(apps[0]["name"]) if apps else ""


def invitation_of(request: HttpRequest) -> Invitation | None:
    """The open invitation by which this browser came, if any."""
    token = request.session.get(INVITED)
    found = Invitation.objects.select_related("collection").filter(token=token).first() if token else None
    return found if found is not None and not members.why_closed(found) else None


@transaction.atomic
def disconnect_provider(user: User) -> bool:
    """Disconnect an account; False: it is not connected. Raises BadInput where it has no password to come in by."""
    connection = SocialAccount.objects.filter(user=user).first()
    if connection is None:
        return False
    if not user.has_usable_password():
        raise BadInput("You have no password yet, and would have no way in: ask an owner for a link to set one")
    connection.delete()
    record(user, "provider.disconnected")
    return True
