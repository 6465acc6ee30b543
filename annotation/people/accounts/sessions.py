"""Signed-in devices of an account: listing them, and signing them out (allauth.usersessions)."""

import ipaddress
import re
from importlib import import_module
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils import timezone

from annotation.models import User

# In this order, because Edge and Opera also call themselves Chrome, and Chrome calls itself Safari.
BROWSERS = ("Edg", "OPR", "Firefox", "Chrome", "Safari")
NAMES = {"Edg": "Edge", "OPR": "Opera"}
SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux")


def sessions_of(user: User, current: str | None) -> list[dict[str, Any]]:
    """Return the user's unexpired sessions, newest first; `current`: the key of the request's session."""
    unexpired = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    rows = UserSession.objects.filter(user=user, session_key__in=unexpired).order_by("-created_at", "-pk")
    return [
        {"pk": row.pk, "address": row.ip, "since": row.created_at, "is_this": row.session_key == current}
        | {"browser": describe_browser(row.user_agent)}
        for row in rows
    ]


def end_others(user: User, current: str | None, *, only: int | None = None) -> int:
    """End all sessions of a user but the current one (None: all), or the session `only`; return their number."""
    others = UserSession.objects.filter(user=user).exclude(session_key=current or "")
    rows = list(others if only is None else UserSession.objects.filter(user=user, pk=only))
    store = import_module(settings.SESSION_ENGINE).SessionStore()
    for row in rows:
        store.delete(row.session_key)
        row.delete()
    return len(rows)


def describe_browser(agent: str) -> str:
    """Return browser and system from a User-Agent, such as "Firefox · Linux"; "" where both are unknown."""
    name = next((word for word in BROWSERS if f"{word}/" in agent or f"{word}iOS/" in agent), "")
    system = next((word for word in SYSTEMS if re.search(rf"\b{word}\b", agent)), "")
    return " · ".join(part for part in (NAMES.get(name, name), system.replace("Mac OS X", "macOS")) if part)


def client_network(request: HttpRequest) -> str:
    """Return a visitor's network (/24 or /48), which tells attacks apart without storing addresses."""
    try:
        address = ipaddress.ip_address(get_adapter().get_client_ip(request))
    except (PermissionDenied, ValueError):
        return ""
    # The usual networks of a household or a site in IPv4 and IPv6.
    bits = 24 if address.version == 4 else 48
    return str(ipaddress.ip_network(f"{address}/{bits}", strict=False))
