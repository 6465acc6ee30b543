"""Language and appearance of pages: from the account, else a cookie on this device, else the browser.

English stands in the source, every other language in locale/. docs/annotators.md says how to add
one. CSV files are for programs: they speak English, whoever asks.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import translation
from django.utils.functional import SimpleLazyObject
from django.utils.translation import get_language, gettext, trans_real

from annotation.models import User

CODES = frozenset(code for code, _ in settings.LANGUAGES)
# What a person may choose about the look of pages; empty: the device's or page's own.
LOOKS = {
    "theme": frozenset({"", "light", "dark"}),
    "contrast": frozenset({"", "more"}),
    "size": frozenset({"", "large", "larger"}),
    "typeface": frozenset({"", "serif"}),
}
A_YEAR = 365 * 24 * 3600
PLACEHOLDER = re.compile(r"%\((\w+)\)[sd]")
# Letters of a message's own: with fewer, any text would be one of its kind, unless it stands around another message.
FEWEST_LETTERS, FEWEST_AROUND = 12, 4
DEEPEST = 3  # Messages inside messages: a file and line, what is wrong there, and why.


class LanguageMiddleware(LocaleMiddleware):
    """The device's language for every request. Whoever is signed in gets theirs by `speak_to`."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        if is_for_programs(request):
            translation.activate(settings.LANGUAGE_CODE)


def is_for_programs(request: HttpRequest) -> bool:
    """Return whether a page's table or chart is asked for as CSV or JSON, whose words are the same for every reader."""
    return request.GET.get("as") in ("csv", "json")


def speak_to(user: User, request: HttpRequest) -> None:
    """Switch this request to the language of the account, where one is chosen; files for programs stay English."""
    if user.language in CODES and user.language != translation.get_language() and not is_for_programs(request):
        translation.activate(user.language)


def save_display_choice(user: User | None, response: HttpResponseBase, given: Mapping[str, str]) -> None:
    """Keep what somebody chose, with the account and on this device; only what is offered."""
    found: dict[str, object] = {}
    if given.get("language") in CODES:
        found["language"] = given["language"]
        _set_choice_cookie(response, settings.LANGUAGE_COOKIE_NAME, given["language"])
    looks = {name: given[name] for name, offered in LOOKS.items() if given.get(name) in offered}
    for name, value in looks.items():
        _set_choice_cookie(response, name, value)
    if user is not None and looks:
        found["display"] = {**user.display, **looks}
    if user is not None and found:
        User.objects.filter(pk=user.pk).update(**found)


def look_context(request: HttpRequest) -> dict[str, Any]:
    """Return the templates' variable `look`, worked out where it is shown: the account's, else the device's."""

    def look() -> dict[str, str]:
        user = getattr(request, "user", None)
        own = user.display if user is not None and user.is_authenticated else {}
        look = {name: own.get(name, request.COOKIES.get(name, "")) for name in LOOKS}
        return {name: value if value in LOOKS[name] else "" for name, value in look.items()}

    return {"look": SimpleLazyObject(look)}


def translate_stored(text: str, depth: int = 0) -> str | None:
    """Say in the reader's language what a worker stored in English; None where the catalogue does not have it.

    Workers store a message with its values filled in. The message is found again by its own words,
    and the values stand in the translation as they were, or translated where they are messages
    themselves (`depth`: inside others).
    """
    if (whole := gettext(text)) != text:
        return whole
    messages = [
        (letters, message)
        for letters, message, parts in _messages(get_language() or "")
        if text.startswith(parts[0]) and text.endswith(parts[-1]) and all(part in text for part in parts)
    ]
    for letters, message in sorted(messages, reverse=True) if depth < DEEPEST else ():
        if values := _pattern(message).fullmatch(text):
            known = {name: translate_stored(value, depth + 1) for name, value in values.groupdict().items()}
            if letters >= FEWEST_LETTERS or any(known.values()):
                said = {name: known[name] or values[name] for name in known}
                filled = PLACEHOLDER.sub(lambda name, said=said: said[name[1]], gettext(message))  # type: ignore[misc]
                return filled.replace("%%", "%")
    return None


@cache
def _messages(language: str) -> list[tuple[int, str, list[str]]]:
    """List the catalogue's messages with values: how many letters of their own they have, and the parts between."""
    rows = []
    catalogue: Any = trans_real.translation(language)
    # As Django's JavaScriptCatalog reads it: nothing else lists what a catalogue has.
    for message in catalogue._catalog.keys():  # noqa: SIM118
        if isinstance(message, str) and PLACEHOLDER.search(message):
            parts = [part.replace("%%", "%") for part in PLACEHOLDER.split(message)[::2]]
            rows.append((len(re.sub(r"\W", "", "".join(parts))), message, parts))
    return [row for row in rows if row[0] >= FEWEST_AROUND]


def _pattern(message: str) -> re.Pattern[str]:
    """Return the pattern of every text that is the message with its values."""
    pieces, seen = [], set[str]()
    for place, piece in enumerate(PLACEHOLDER.split(message)):
        if place % 2 == 0:
            pieces.append(re.escape(piece.replace("%%", "%")))
        else:
            pieces.append(f"(?P={piece})" if piece in seen else f"(?P<{piece}>.+?)")
            seen.add(piece)
    return re.compile("".join(pieces), re.DOTALL)


def _set_choice_cookie(response: HttpResponseBase, name: str, value: str) -> None:
    response.set_cookie(
        name, value, max_age=A_YEAR, httponly=True, secure=settings.SESSION_COOKIE_SECURE, samesite="Lax"
    )
