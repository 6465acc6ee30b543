"""The devices on which a user is signed in: listing them, and ending their sessions.

The records of sessions are those of allauth.usersessions.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone

from annotation.models import User

# Browsers by a part of their User-Agent header. The first match counts, because the header of a browser also contains
# the parts of later ones: Edge and Opera also call themselves Chrome, and nearly all browsers call themselves Safari.
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
# Operating systems by a word of the header. Here too the first match counts, because Android also calls itself Linux,
# and iPhone and iPad call themselves "like Mac OS X".
SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}


@dataclass(frozen=True, slots=True)
class SignedInDevice:
    """A session of a user as the account page lists it."""

    pk: int  # Primary key of the UserSession.
    ip_address: str
    signed_in_at: datetime
    is_current: bool  # Whether the request that lists the devices comes from this one.
    browser_and_system: str  # Such as "Firefox · Linux"; empty if both are unknown.


def list_devices(user: User, current_key: str | None) -> list[SignedInDevice]:
    """Return the devices on which a user is signed in, the newest session first.

    `current_key` is the key of the request's session, or None if the request has no session.
    """
    unexpired_keys = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    unexpired_sessions = UserSession.objects.filter(user=user, session_key__in=unexpired_keys)
    return [
        SignedInDevice(
            pk=session.pk,
            ip_address=session.ip,
            signed_in_at=session.created_at,
            is_current=session.session_key == current_key,
            browser_and_system=describe_browser_and_system(session.user_agent),
        )
        for session in unexpired_sessions.order_by("-created_at", "-pk")
    ]


def end_all_sessions(user: User) -> int:
    """End all sessions of a user, and return how many there were."""
    return _end_sessions(UserSession.objects.filter(user=user))


def end_other_sessions(user: User, current_key: str | None) -> int:
    """End all sessions of a user except the one with the key `current_key`, and return how many were ended.

    `current_key` is None in a request without a session, such as the first one of a visitor; then all sessions end.
    """
    return _end_sessions(UserSession.objects.filter(user=user).exclude(session_key=current_key or ""))


def end_session(user: User, pk: int) -> bool:
    """End the session with this primary key, and return whether the user had such a session."""
    return _end_sessions(UserSession.objects.filter(user=user, pk=pk)) > 0


def _end_sessions(user_sessions: QuerySet[UserSession]) -> int:
    """Sign out the devices of these sessions, delete the sessions, and return their number."""
    session_store = import_module(settings.SESSION_ENGINE).SessionStore()
    ended_sessions = list(user_sessions)
    for user_session in ended_sessions:
        # Django's session signs the device in; allauth's UserSession only describes it.
        session_store.delete(user_session.session_key)
        user_session.delete()
    return len(ended_sessions)


def describe_browser_and_system(user_agent: str) -> str:
    """Return the browser and the operating system that a User-Agent header names, such as "Firefox · Linux".

    An unknown browser or system is left out; the description is empty if both are unknown.
    """
    browser = next((name for token, name in BROWSERS.items() if token in user_agent), "")
    system = next((name for token, name in SYSTEMS.items() if re.search(rf"\b{token}\b", user_agent)), "")
    return " · ".join(name for name in (browser, system) if name)
