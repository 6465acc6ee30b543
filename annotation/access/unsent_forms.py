"""Forms that were sent after the session had ended: kept in a new session until their sender has signed in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest

KEY = "unsent_form"
LONGEST = 200_000  # Characters of all fields: a long guideline fits, a file does not.
# Fields that are never kept: secrets, and the CSRF token of the ended session.
SECRET = ("password", "secret", "token", "csrfmiddlewaretoken", "code")
SECRET_NAMES = {"key"}  # Of whole fields: others contain the word, such as `api_key_env`.


@dataclass(frozen=True, slots=True)
class UnsentForm:
    """A form as it was sent: the address it goes to, the page it was on, and its fields in order."""

    action: str
    page: str
    fields: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...] = ()  # Names of files, which must be selected again.

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return the fields with several words, which the page shows for copying."""
        return [(name, value) for name, value in self.fields if len(value.split()) > 1]


def keep(request: HttpRequest) -> bool:
    """Keep a request's form until after the sign-in; return whether it can be kept."""
    fields = [
        (name, value)
        for name, values in request.POST.lists()
        for value in values
        if not any(word in name.lower() for word in SECRET) and name not in SECRET_NAMES
    ]
    if not fields or sum(len(name) + len(str(value)) for name, value in fields) > LONGEST:
        return False
    request.session[KEY] = {
        "action": request.get_full_path(),
        "page": page_of(request),
        "fields": fields,
        "left_out": [file.name for _name, files in request.FILES.lists() for file in files],
    }
    return True


def read(request: HttpRequest) -> UnsentForm | None:
    """Return the form kept in this session; None where there is none."""
    row: Mapping[str, Any] | None = request.session.get(KEY)
    if row is None:
        return None
    fields = tuple((name, value) for name, value in row["fields"])
    return UnsentForm(row["action"], row["page"], fields, tuple(row["left_out"]))


def forget(request: HttpRequest) -> None:
    """Remove the form from the session."""
    request.session.pop(KEY, None)


def forget_sent(request: HttpRequest) -> None:
    """Remove the form from the session where this request sends it again."""
    if (request.session.get(KEY) or {}).get("action") == request.get_full_path():
        forget(request)


def page_of(request: HttpRequest) -> str:
    """Return the path of the page that the form was on; the form's address where the browser does not say."""
    parts = urlsplit(request.headers.get("Referer", ""))
    if parts.netloc != request.get_host() or not parts.path.startswith("/"):
        return request.get_full_path()
    return parts.path + (f"?{parts.query}" if parts.query else "")
