"""Asking a search endpoint: one request for a query, its answer as hits, and what to change where that fails."""

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from django.conf import settings as django_settings
from django.utils.translation import gettext as _

from actions.options import UNSTORABLE
from benchmark.search_endpoints.hits import HitMapping, HitPage
from benchmark.search_endpoints.options import address_key, request_values
from benchmark.search_endpoints.templates import render_body, render_path
from corpus.collections.secrets import read_secret
from corpus.errors import BadInput, BadOption
from corpus.url_fetch.client import FetchLimits, WebClient, WebResponse
from corpus.url_fetch.problems import NoPage
from judges.providers.received import retry_after

BYTES = 20_000_000  # Most of an answer.
LONGEST_URL = 20_000  # Characters of an address with its query.
SHOWN = 200  # Characters of an engine's own message.
SHORT_SECRET = 12  # Values with fewer characters are not looked for in answers: documents may have them as words.
MASK = "•••"
_ESCAPE = re.compile(rb"\\(?:u00([2-7][0-9a-fA-F])|(.))", re.DOTALL)  # In JSON.
# Statuses after which the same request may succeed.
RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
RETRYABLE_CODES = frozenset({"slow", "unread", "cut-off"})


class SearchFailed(BadInput):
    """A search failed; the message is one line that says what to change.

    `code` counts alike failures; `is_retryable`: the same request may succeed later, after `wait_s` seconds where the
    engine said so.
    """

    def __init__(self, code: str, sentence: str, *, is_retryable: bool = False, wait_s: float | None = None) -> None:
        # An engine's own words may have characters that PostgreSQL cannot store.
        super().__init__(UNSTORABLE.sub("", sentence).removesuffix("."))
        self.code, self.is_retryable, self.wait_s = code, is_retryable, wait_s
        self.answer: SearchAnswer | None = None  # The answer that has no hits, for the page that shows its shape.


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request as it is sent, with its secrets masked."""

    method: str
    url: str
    headers: dict[str, str]
    body: str


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The answer to a query. `raw`: the body, without the endpoint's secrets; `seconds`: of the request."""

    page: HitPage
    seconds: float
    request: SentRequest
    status: int
    raw: bytes


class EndpointSession:
    """Asks an endpoint queries, at most `connections` at a time: an asynchronous context manager.

    Takes the complete settings of an endpoint. Raises SearchFailed at the beginning where a variable is not set.
    """

    def __init__(self, settings: Mapping[str, Any], *, connections: int = 20) -> None:
        self.settings = settings
        self.mapping = HitMapping(settings)
        limits = FetchLimits(bytes=BYTES, seconds=settings["timeout_s"], redirects=3, url=LONGEST_URL)
        self.client = WebClient(
            allowed=django_settings.SEARCH_HOSTS, any_port=True, limits=limits, connections=connections
        )
        self.secrets: list[str] = []
        self.headers: dict[str, str] = {}
        self.shown_headers: dict[str, str] = {}
        per_minute = settings.get("requests_per_minute")
        self._interval = 60 / per_minute if per_minute else 0.0
        self._next_start = 0.0

    async def __aenter__(self) -> Self:
        plain = {"Accept": "application/json", **self.settings["headers"]}
        if self.settings["method"] == "POST":
            plain["Content-Type"] = "application/json"
        self.headers, self.shown_headers = dict(plain), dict(plain)
        for header, value, shown in self._sign_in():
            self.headers[header], self.shown_headers[header] = value, shown
        await self.client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.client.__aexit__(kind, error, trace)

    async def search(self, query: str, k: int) -> SearchAnswer:
        """Return the first `k` hits for a query. Raises SearchFailed."""
        request, body = self.build_request(query, k)
        # Requests are spread evenly over the minute: this one waits until it is within the rate.
        if self._interval:
            start = max(monotonic(), self._next_start)
            self._next_start = start + self._interval
            await asyncio.sleep(start - monotonic())
        try:
            response = await self.client.send(
                request.method, request.url, headers=self.headers, content=body.encode() if body else None
            )
        except NoPage as problem:
            raise self._describe(problem) from None
        return self.read(request, response, k)

    def build_request(self, query: str, k: int) -> tuple[SentRequest, str]:
        """Return a request with its secrets masked, and its body. Raises SearchFailed."""
        settings = self.settings
        if k > settings["max_k"]:
            words = _("The engine returns at most %(most)s hits for a request. Use a depth of %(most)s or less.")
            raise SearchFailed("depth", words % {"most": settings["max_k"]})
        values = request_values(settings, query, k)
        try:
            url = settings["base_url"] + render_path(settings["path"], values)
            body = render_body(settings["body"], values) if settings["body"] else ""
        except BadInput as error:
            raise SearchFailed("template", f"{error}.") from None
        return SentRequest(settings["method"], self.mask(url), self.shown_headers, body), body

    def read(self, request: SentRequest, response: WebResponse, k: int) -> SearchAnswer:
        """Return the hits of a response. Raises SearchFailed."""
        # An engine may repeat a key in its answer, and hits are stored.
        raw = _ESCAPE.sub(_write_out, response.body) if self.secrets else response.body
        for secret in self.secrets:
            raw = raw.replace(json.dumps(secret)[1:-1].encode(), MASK.encode())
        answer = SearchAnswer(HitPage([]), response.seconds, request, response.status, raw)
        try:
            if response.status != 200:
                raise self._describe_status(response, raw)
            try:
                document = json.loads(raw, parse_constant=lambda name: None)
            except (ValueError, RecursionError):
                raise _not_json(response, raw) from None
            if problem := self.mapping.find_error(document):
                words = _("The engine refuses: %(error)s")
                raise SearchFailed("refused", words % {"error": _one_line(problem)})
            page = self.mapping.read(document)
        except BadOption as error:
            option, sentence = error.problems[0]
            failure = SearchFailed("mapping", f"{option}: {sentence}")
            failure.answer = answer
            raise failure from None
        except RecursionError:
            failure = SearchFailed("nested", _("The answer is nested too deeply"))
            failure.answer = answer
            raise failure from None
        except SearchFailed as failure:
            failure.answer = answer
            raise
        return SearchAnswer(replace(page, hits=page.hits[:k]), response.seconds, request, response.status, raw)

    def mask(self, text: str) -> str:
        """Return a text without the endpoint's secrets."""
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        return text

    def _sign_in(self) -> Iterator[tuple[str, str, str]]:
        """Yield header, value and the value as shown, of each secret. Raises SearchFailed for an unset variable."""
        settings = self.settings
        if settings["user_env"]:
            # The user's name is no secret, and may be a word of any document.
            user = self._value_of(settings["user_env"], is_secret=False)
            password = self._value_of(settings["password_env"])
            encoded = b64encode(f"{user}:{password}".encode()).decode()
            self._hide(encoded)
            yield "Authorization", f"Basic {encoded}", f"Basic {MASK}"
        if settings["bearer_env"]:
            yield "Authorization", f"Bearer {self._value_of(settings['bearer_env'])}", f"Bearer {MASK}"
        if settings["api_key_env"]:
            header, prefix = settings["key_header"], settings["key_prefix"]
            yield header, f"{prefix}{self._value_of(settings['api_key_env'])}", f"{prefix}{MASK}"
        for header, variable in settings["header_env"].items():
            yield header, self._value_of(variable), MASK

    def _value_of(self, variable: str, *, is_secret: bool = True) -> str:
        try:
            value = read_secret(variable)
        except BadInput as error:
            raise SearchFailed("variable", f"{error}.") from None
        if not value:
            words = _("The environment variable %(name)s is not set. Set it where searches run, and restart.")
            raise SearchFailed("variable", words % {"name": variable})
        if not (value.isascii() and value.isprintable()):
            words = _(
                "The value of the environment variable %(name)s cannot be sent as a header. Set it to plain letters."
            )
            raise SearchFailed("variable", words % {"name": variable})
        if is_secret:
            self._hide(value)
        return value

    def _hide(self, secret: str) -> None:
        # A value like "Bearer abc" has its secret behind the space.
        self.secrets += [part for part in {secret, secret.rpartition(" ")[2]} if len(part) >= SHORT_SECRET]
        self.secrets.sort(key=len, reverse=True)

    def _describe(self, problem: NoPage) -> SearchFailed:
        """Return what to change where no answer came."""
        code, host = problem.code, address_key(self.settings["base_url"])
        sentences = {
            "not-public": _(
                "%(host)s is on a private network. Set QUORUM_SEARCH_HOSTS=%(host)s on the server to allow it."
            ),
            "plain-http": _(
                "Keys are not sent over http. Use https, or set QUORUM_SEARCH_HOSTS=%(host)s on the server."
            ),
            "large": _("The answer is larger than %(most)s MB. Have the engine return fewer hits or fields."),
            "address-odd": _("The address with this query is too long. Use POST, with the query in the body."),
            "slow": _("No answer within %(seconds)s seconds. Check the engine, or raise the time limit (timeout_s)."),
        }
        is_elsewhere = problem.values.get("host") not in (None, urlsplit(self.settings["base_url"]).hostname)
        if code not in sentences or is_elsewhere:
            return SearchFailed(code, self.mask(str(problem)), is_retryable=code in RETRYABLE_CODES)
        values = {**problem.values, "host": host, "seconds": f"{self.settings['timeout_s']:g}"}
        return SearchFailed(code, sentences[code] % values, is_retryable=code in RETRYABLE_CODES)

    def _describe_status(self, response: WebResponse, raw: bytes) -> SearchFailed:
        """Return what to change where the engine answered with another status than 200."""
        status, path = response.status, self.settings["path"]
        if status in (401, 403):
            names = [self.settings[name] for name in ("user_env", "password_env", "bearer_env", "api_key_env")]
            names = [name for name in [*names, *self.settings["header_env"].values()] if name]
            words = _("Status %(status)s: the engine refuses the key. Check the value of %(names)s.")
            words = words if names else _("Status %(status)s: the engine needs a key. Name a variable that has one.")
            sentence = words % {"status": status, "names": ", ".join(names)}
        elif status in (404, 405):
            words = _("Status %(status)s: nothing is at this path. Check base URL, index and path (%(path)s).")
            sentence = words % {"status": status, "path": path}
        else:
            words = _("Status %(status)s: the engine refuses the request. Check template and parameters.")
            words = (
                _("Status %(status)s: the engine is busy or failed. Try again later.") if status in RETRYABLE else words
            )
            sentence = words % {"status": status}
        # The engine's own message, if the body of the answer is JSON with one.
        error = ""
        with suppress(ValueError, RecursionError):
            error = _one_line(next(_messages(json.loads(raw)), ""))
        if error:
            sentence += " " + _("The engine says: %(error)s") % {"error": error}
        is_retryable = status in RETRYABLE
        wait_s = retry_after(response.headers) if is_retryable else None
        return SearchFailed(f"status-{status}", sentence, is_retryable=is_retryable, wait_s=wait_s)


def _write_out(escape: re.Match[bytes]) -> bytes:
    """Return an escaped character of JSON as it is, where it is one of ASCII that needs no escape."""
    letter = bytes.fromhex(escape[1].decode()) if escape[1] else escape[2]
    if letter in (b'"', b"\\"):
        return b"\\" + letter
    return letter if escape[1] or letter == b"/" else escape[0]


def _not_json(response: WebResponse, raw: bytes) -> SearchFailed:
    media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media == "text/html" or re.match(rb"\s*<(!doctype|html)", raw, re.IGNORECASE):
        return SearchFailed("html", _("The answer is an HTML page, not JSON. Check base URL and path."))
    if not raw.strip():
        return SearchFailed("empty", _("The answer is empty. Check method and path."))
    return SearchFailed("not-json", _("The answer is not JSON. Check base URL and path."))


def _messages(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the messages of an error, as engines write them: the innermost reasons first."""
    if isinstance(value, list):
        for part in value[:3]:
            yield from _messages(part, depth)
    elif isinstance(value, dict) and depth < 6:
        for key in ("root_cause", "error", "errors", "detail", "status", "root"):
            if isinstance(inner := value.get(key), dict | list):
                yield from _messages(inner, depth + 1)
        for key in ("message", "msg", "reason", "detail", "error"):
            if isinstance(text := value.get(key), str) and text.strip():
                yield text


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"
