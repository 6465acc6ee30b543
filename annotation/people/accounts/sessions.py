"""Signed-in devices of an account: listing them, and signing them out (allauth.usersessions).

Also what the audit log and this list say of a visitor: browser, system and network.
"""

import ipaddress
import re
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module

from allauth.account.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from annotation.models import User

# Browsers by a token of their User-Agent, in this order, because most agents also contain the tokens of later ones:
# Edge and Opera call themselves Chrome, and nearly all browsers call themselves Safari.
BROWSERS = {
    "Edg/": "Edge",
    "EdgA/": "Edge",
    "EdgiOS/": "Edge",
    "OPR/": "Opera",
    "FxiOS/": "Firefox",
    "Firefox/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
# Systems in this order, because Android also calls itself Linux, and the iPhone and iPad "like Mac OS X".
SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}
# The usual networks of a household or a site, as numbers of bits.
IPV4_PREFIX = 24
IPV6_PREFIX = 48


@dataclass(frozen=True, slots=True)
class SignedInDevice:
    """A session of a user as the account page lists it."""

    pk: int
    address: str  # IP address.
    since: datetime
    is_this: bool  # Whether it is the session of the request.
    browser: str  # Browser and system; "" if both are unknown.


def list_devices(user: User, current: str | None) -> list[SignedInDevice]:
    """Return the user's unexpired sessions, newest first. `current` is the key of the request's session."""
    unexpired = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    sessions = UserSession.objects.filter(user=user, session_key__in=unexpired).order_by("-created_at", "-pk")
    return [
        SignedInDevice(
            pk=session.pk,
            address=session.ip,
            since=session.created_at,
            is_this=session.session_key == current,
            browser=describe_browser(session.user_agent),
        )
        for session in sessions
    ]


def end_all(user: User) -> int:
    """End all sessions of a user, and return their number."""
    return _end(UserSession.objects.filter(user=user))


def end_others(user: User, current: str | None) -> int:
    """End all sessions of a user except the one with the key `current`, and return the number of ended sessions.

    `current` is None in a request without a session, such as the first one of a visitor; then all sessions end.
    """
    return _end(UserSession.objects.filter(user=user).exclude(session_key=current or ""))


def end_one(user: User, pk: int) -> bool:
    """End one session of a user, and return whether the user had it."""
    return _end(UserSession.objects.filter(user=user, pk=pk)) > 0


def _end(sessions: QuerySet[UserSession]) -> int:
    session_store = import_module(settings.SESSION_ENGINE).SessionStore()
    rows = list(sessions)
    for row in rows:
        session_store.delete(row.session_key)
        row.delete()
    return len(rows)


def describe_browser(agent: str) -> str:
    """Return browser and system from a User-Agent, such as "Firefox · Linux"; "" if both are unknown."""
    browser = next((name for token, name in BROWSERS.items() if token in agent), "")
    system = next((name for token, name in SYSTEMS.items() if re.search(rf"\b{token}\b", agent)), "")
    return " · ".join(name for name in (browser, system) if name)


def client_network(request: HttpRequest) -> str:
    """Return the network of a visitor, /24 for IPv4 and /48 for IPv6; "" if the address is unknown.

    It distinguishes attackers without storing anybody's address.
    """
    try:
        address = ipaddress.ip_address(get_adapter().get_client_ip(request))
    except (PermissionDenied, ValueError):
        return ""
    prefix = IPV4_PREFIX if address.version == 4 else IPV6_PREFIX
    return str(ipaddress.ip_network(f"{address}/{prefix}", strict=False))
