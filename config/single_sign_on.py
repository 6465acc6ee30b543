"""The OpenID Connect provider, from the environment: QUORUM_OIDC_URL, _CLIENT_ID, _SECRET, _NAME (docs/people.md)."""

from typing import Any
from urllib.parse import urlsplit

from config import env
from embedded.refuse import refuse

# The provider's name in addresses and in stored connections, which another server with this name would inherit.
PROVIDER = "sso"


def openid_providers(url: str) -> dict[str, Any]:
    """Return allauth's SOCIALACCOUNT_PROVIDERS with one provider, or with none if there is no address."""
    if not url:
        return {}
    client = env.text("QUORUM_OIDC_CLIENT_ID")
    if not client:
        refuse("QUORUM_OIDC_URL is set: set QUORUM_OIDC_CLIENT_ID too (and QUORUM_OIDC_SECRET or its _FILE).")
    app = {
        "provider_id": PROVIDER,
        "name": env.text("QUORUM_OIDC_NAME", "single sign-on"),
        "client_id": client,
        "secret": env.secret("QUORUM_OIDC_SECRET"),
        "settings": {"server_url": url},
    }
    return {"openid_connect": {"APPS": [app], "OAUTH_PKCE_ENABLED": True}}


def form_origins(url: str) -> list[str]:
    """Return the origins to which our sign-in button may lead, for the Content-Security-Policy."""
    if not url:
        return []
    # The provider's own origin, and others if its sign-in page is elsewhere.
    parts = urlsplit(url)
    return [f"{parts.scheme}://{parts.netloc}", *env.origins("QUORUM_OIDC_ORIGINS")]
