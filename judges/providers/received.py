"""Answer of one call: kept as it came, within bounds of size, before anybody reads it."""

import time
from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import aiohttp
import httpx2

from judges.providers.connections import FAILURES, certificate_error, describe_failure
from judges.rates import read_rate
from judges.records import Body

MAX_BODY = 4_000_000  # Bytes of one answer that are read and kept; a judge's answer has a few thousand.
LONGEST_WAIT = 86_400.0
BILL = "x-litellm-response-cost"
MOST_BILL = 1e6  # USD of one call: a larger number is none.
# Errors that mean: there was no connection. aiohttp's own are looked at first: the SDKs' adapter
# calls any broken connection a ConnectTimeout.
UNSENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
    httpx2.ConnectError,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)
# Headers of a request that nobody else may read.
SECRET = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "x-amz-security-token")


@dataclass(slots=True)
class Received:
    """The answer to one call, and what went wrong with it."""

    credentials: Mapping[str, str] = field(default_factory=dict)  # Headers that show who asks.
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)  # Found by any spelling of their names.
    chunks: list[bytes] = field(default_factory=list)
    whole: bool = False
    failure: str = ""  # Why no whole answer came, in the HTTP client's words.
    late: bool = False  # The call's time was over.
    unsent: bool = False  # There was no connection: nothing can have been charged.
    misconfigured: bool = False  # This machine's own settings stand in the way: another try would fail alike.
    arrived: Callable[[Body], None] | None = None
    began: Callable[[int], None] | None = None  # Told the status as soon as an answer begins.
    kept: Body | None = None  # The answer, once its last byte is here.
    hidden: set[str] = field(default_factory=set)  # Values of secret headers that went with the request.

    async def read_body(self, status: int, headers: Mapping[str, str], body: AsyncIterable[bytes]) -> None:
        """Read the body, up to MAX_BODY, and keep it."""
        self.status, self.headers = status, headers
        if self.began is not None:
            self.began(status)
        size = 0
        async for chunk in body:
            self.chunks.append(chunk[: MAX_BODY - size])
            size += len(chunk)
            if size > MAX_BODY:
                break
        self.whole = size <= MAX_BODY
        wait, bill, rate = retry_after(headers), header_bill(headers), read_rate(headers)
        self.kept = Body(status, self.text, wait, whole=self.whole, bill=bill, rate=rate)
        if self.arrived is not None:
            self.arrived(self.kept)

    def hide(self, headers: Mapping[str, str]) -> None:
        """Note what the request showed, should the server repeat it: some SDKs sign themselves."""
        self.hidden |= {headers[name] for name in SECRET if name in headers}

    def broke(self, error: BaseException) -> None:
        """Note why no whole answer came, if that is what an SDK's error means."""
        found: BaseException | None = None
        cause: BaseException | None = error
        while cause is not None:
            found = cause if isinstance(cause, FAILURES) else found
            cause = cause.__cause__ or cause.__context__
        if found is None:
            return
        self.unsent = self.status is None and isinstance(found, UNSENT)
        self.failure = describe_failure(error, begun=self.status is not None)
        self.misconfigured = certificate_error(error) is not None

    @property
    def text(self) -> str:
        """The body as text, without the key should the server repeat it."""
        text = b"".join(self.chunks).decode("utf-8", "replace")
        for value in {*self.credentials.values(), *self.hidden}:
            key = value.rpartition(" ")[2]
            # An empty one is in every text, between all of its characters.
            if key and key in text:
                text = text.replace(key, "[key]")
        return text


def header_bill(headers: Mapping[str, str]) -> float | None:
    """Return USD that a gateway says the call cost; None where it says nothing, or 0 of a model without a price."""
    try:
        cost = float(headers.get(BILL, ""))
    except ValueError:
        return None
    return cost if 0 < cost < MOST_BILL else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return seconds that the server asks us to wait, from seconds or an HTTP date; None without a usable header."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except (ValueError, TypeError, OverflowError):
                continue
        if seconds == seconds:
            return min(max(seconds, 0.0), LONGEST_WAIT)
    return None
