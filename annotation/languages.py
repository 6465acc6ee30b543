"""Language and appearance of pages: from the account, else a cookie on this device, else the browser.

English stands in the source, every other language in locale/. docs/languages.md says how to add one. CSV files are for
programs: they speak English, whoever asks.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import translation
from django.utils.functional import SimpleLazyObject

from annotation.models import User

CODES = frozenset(code for code, _ in settings.LANGUAGES)
# What a person may choose about the look of pages; empty: as the device asks, or as the page was made.
LOOKS = {
    "theme": frozenset({"", "light", "dark"}),
    "contrast": frozenset({"", "more"}),
    "size": frozenset({"", "large", "larger"}),
    "typeface": frozenset({"", "serif"}),
}
A_YEAR = 365 * 24 * 3600


class LanguageMiddleware(LocaleMiddleware):
    """The device's language for every request. Whoever is signed in gets their own from `speak_to`."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        if is_for_programs(request):
            translation.activate(settings.LANGUAGE_CODE)


def is_for_programs(request: HttpRequest) -> bool:
    """A page's table or chart is asked for as CSV or JSON: its header and words are the same for every reader."""
    return request.GET.get("as") in ("csv", "json")


def speak_to(user: User, request: HttpRequest) -> None:
    """Switch this request to the language of the account, where one is chosen; files for programs stay English."""
    if user.language in CODES and user.language != translation.get_language() and not is_for_programs(request):
        translation.activate(user.language)


def save_display_choice(user: User | None, response: HttpResponseBase, given: Mapping[str, str]) -> None:
    """Keep what somebody chose, with the account and on this device. What is not offered is left as it is."""
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
    """What the templates call `look`; worked out only for those that show it."""
    return {"look": SimpleLazyObject(lambda: look_of(request))}


def look_of(request: HttpRequest) -> dict[str, str]:
    """How pages look by choice of the account, else of this device."""
    user = getattr(request, "user", None)
    own = user.display if user is not None and user.is_authenticated else {}
    chosen = {name: own.get(name, request.COOKIES.get(name, "")) for name in LOOKS}
    return {name: value if value in LOOKS[name] else "" for name, value in chosen.items()}


def _set_choice_cookie(response: HttpResponseBase, name: str, value: str) -> None:
    response.set_cookie(
        name, value, max_age=A_YEAR, httponly=True, secure=settings.SESSION_COOKIE_SECURE, samesite="Lax"
    )
