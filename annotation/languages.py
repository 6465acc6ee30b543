"""Which language a page speaks: the account's, else this device's choice (a cookie), else what the browser asks for.

English stands in the source, every other language in locale/. docs/languages.md says how to add one. CSV files are for
programs: they speak English, whoever asks.
"""

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import translation

from annotation.models import User

CODES = frozenset(code for code, _ in settings.LANGUAGES)
CONTRASTS = frozenset({"", "more"})  # As the device asks, or always high.
CONTRAST_COOKIE = "contrast"
A_YEAR = 365 * 24 * 3600


class LanguageMiddleware(LocaleMiddleware):
    """The device's language for every request. Whoever is signed in gets their own from `speak_to`."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        if is_for_programs(request):
            translation.activate(settings.LANGUAGE_CODE)


def is_for_programs(request: HttpRequest) -> bool:
    """A page's table or chart is asked for as CSV: its header and words are the same for every reader."""
    return request.GET.get("as") == "csv"


def speak_to(user: User, request: HttpRequest) -> None:
    """From here on this request answers in the language of the account, where it has chosen one."""
    if user.language in CODES and user.language != translation.get_language() and not is_for_programs(request):
        translation.activate(user.language)


def save_display_choice(user: User | None, response: HttpResponseBase, *, language: str, contrast: str | None) -> None:
    """Keep what somebody chose: the language with the account and on this device, contrast on this device.

    What is not offered is left as it is.
    """
    if language in CODES:
        _set_choice_cookie(response, settings.LANGUAGE_COOKIE_NAME, language)
        if user is not None:
            User.objects.filter(pk=user.pk).update(language=language)
    if contrast in CONTRASTS:
        _set_choice_cookie(response, CONTRAST_COOKIE, contrast)


def _set_choice_cookie(response: HttpResponseBase, name: str, value: str) -> None:
    response.set_cookie(
        name, value, max_age=A_YEAR, httponly=True, secure=settings.SESSION_COOKIE_SECURE, samesite="Lax"
    )
