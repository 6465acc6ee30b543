"""Language, appearance and time zone of pages: from the account, else from this device's cookie or browser.

The source is in English; the other languages are in locale/, and docs/annotators.md says how to add
one. CSV files, which are for programs, are always in English and UTC. The browser's zone comes as a cookie
(static/js/zone.js).
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import timezone, translation
from django.utils.functional import SimpleLazyObject
from django.utils.translation import get_language, gettext, trans_real

from annotation.models import User

CODES = frozenset(code for code, _ in settings.LANGUAGES)
# Choices of appearance; empty: the default of the device or of the page.
LOOKS = {
    "theme": frozenset({"", "light", "dark"}),
    "contrast": frozenset({"", "more"}),
    "size": frozenset({"", "large", "larger"}),
    "typeface": frozenset({"", "serif"}),
}
A_YEAR = 365 * 24 * 3600
PLACEHOLDER = re.compile(r"%\((\w+)\)[sd]")
# The fewest letters of a message beside its values: with fewer, it would match any text. Fewer are enough where one
# of the values is a message itself.
FEWEST_LETTERS, FEWEST_AROUND = 12, 4
DEEPEST = 3  # The depth of messages inside messages: a file and line, the problem there, and its cause.


class LanguageMiddleware(LocaleMiddleware):
    """Activate the device's language and zone for every request; `speak_to` activates those of an account."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        if is_for_programs(request):
            translation.activate(settings.LANGUAGE_CODE)
        _activate_zone(request.COOKIES.get("zone", ""), request)

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        timezone.deactivate()
        return super().process_response(request, response)


def is_for_programs(request: HttpRequest) -> bool:
    """Return whether the request asks for a table or chart as CSV or JSON, which are in English for every reader."""
    return request.GET.get("as") in ("csv", "json")


def speak_to(user: User, request: HttpRequest) -> None:
    """Activate the language and zone of the account for this request, except for files for programs."""
    if user.language in CODES and user.language != translation.get_language() and not is_for_programs(request):
        translation.activate(user.language)
    _activate_zone(user.display.get("zone", ""), request)


def _activate_zone(name: str, request: HttpRequest) -> None:
    if (zone := _find_zone(name)) is not None and not is_for_programs(request):
        timezone.activate(zone)


@lru_cache(maxsize=1_000)  # The names come from visitors.
def _find_zone(name: str) -> ZoneInfo | None:
    try:
        # Not the shared object, so that a reader's zone is told from the site's even where they are the same.
        return ZoneInfo.no_cache(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@cache
def list_zones() -> list[str]:
    """Return the names of the time zones that an account may choose, like "Europe/Berlin"."""
    return sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))


def save_display_choice(user: User | None, response: HttpResponseBase, choices: Mapping[str, str]) -> None:
    """Store the offered choices among `choices` in the account and in cookies of this device."""
    changes: dict[str, object] = {}
    if choices.get("language") in CODES:
        changes["language"] = choices["language"]
        _set_choice_cookie(response, settings.LANGUAGE_COOKIE_NAME, choices["language"])
    looks = {name: choices[name] for name, offered in LOOKS.items() if choices.get(name) in offered}
    for name, value in looks.items():
        _set_choice_cookie(response, name, value)
    # Empty: the zone of each device, whose cookie the browser writes.
    if (zone := choices.get("zone")) is not None and (not zone or zone in list_zones()):
        looks["zone"] = zone
    if user is not None and looks:
        changes["display"] = {**user.display, **looks}
    if user is not None and changes:
        User.objects.filter(pk=user.pk).update(**changes)


def look_context(request: HttpRequest) -> dict[str, Any]:
    """Return the template variable `look`, the appearance of the account, else of the device; computed on first use."""

    def look() -> dict[str, str]:
        user = getattr(request, "user", None)
        own = user.display if user is not None and user.is_authenticated else {}
        look = {name: own.get(name, request.COOKIES.get(name, "")) for name in LOOKS}
        return {name: value if value in LOOKS[name] else "" for name, value in look.items()}

    return {"look": SimpleLazyObject(look)}


def translate_stored(text: str, depth: int = 0) -> str | None:
    """Translate a text that a worker stored in English; None where the catalogue does not have it.

    Workers store a message with its values filled in. The message is found again by its fixed parts.
    Values are copied into the translation, or translated where they are messages themselves (`depth`:
    how many messages this one is inside of).
    """
    if (translation_of_all := gettext(text)) != text:
        return translation_of_all
    messages = [
        (letters, message)
        for letters, message, parts in _messages(get_language() or "")
        if text.startswith(parts[0]) and text.endswith(parts[-1]) and all(part in text for part in parts)
    ]
    for letters, message in sorted(messages, reverse=True) if depth < DEEPEST else ():
        # The pattern of the texts that are this message with any values.
        patterns, names = [], set[str]()
        for position, piece in enumerate(PLACEHOLDER.split(message)):
            if position % 2 == 0:
                patterns.append(re.escape(piece.replace("%%", "%")))
            else:
                patterns.append(f"(?P={piece})" if piece in names else f"(?P<{piece}>.+?)")
                names.add(piece)
        if values := re.fullmatch("".join(patterns), text, re.DOTALL):
            translations = {name: translate_stored(value, depth + 1) for name, value in values.groupdict().items()}
            if letters >= FEWEST_LETTERS or any(translations.values()):
                value_by_name = {name: translations[name] or values[name] for name in translations}
                pieces = PLACEHOLDER.split(gettext(message))
                pieces[1::2] = [value_by_name[name] for name in pieces[1::2]]
                return "".join(pieces).replace("%%", "%")
    return None


@cache
def _messages(language: str) -> list[tuple[int, str, list[str]]]:
    """List the catalogue's messages with values: the number of letters, the message, the parts between its values."""
    rows = []
    catalogue: Any = trans_real.translation(language)
    # A private attribute, which Django's JavaScriptCatalog reads too: nothing else lists a catalogue's messages.
    for message in catalogue._catalog.keys():  # noqa: SIM118
        if isinstance(message, str) and PLACEHOLDER.search(message):
            parts = [part.replace("%%", "%") for part in PLACEHOLDER.split(message)[::2]]
            rows.append((len(re.sub(r"\W", "", "".join(parts))), message, parts))
    return [row for row in rows if row[0] >= FEWEST_AROUND]


def _set_choice_cookie(response: HttpResponseBase, name: str, value: str) -> None:
    response.set_cookie(
        name, value, max_age=A_YEAR, httponly=True, secure=settings.SESSION_COOKIE_SECURE, samesite="Lax"
    )
