"""The answer to one call, stored as it arrived, up to a limit of size, before it is parsed."""

import time
from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import aiohttp
import httpx2

from judges.providers.connections import FAILURES, certificate_error, describe_failure
from judges.rates import read_rate
from judges.records import Body

MAX_BODY = 4_000_000  # Bytes of an answer that are read and stored; a judge's answer has a few thousand.
LONGEST_WAIT = 86_400.0
BILL = "x-litellm-response-cost"
MOST_BILL = 1e6  # USD of one call: a larger number is ignored.
# Errors that mean that there was no connection. The innermost cause counts, because the SDKs' adapter reports any
# broken connection of aiohttp as a ConnectTimeout.
UNSENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
    httpx2.ConnectError,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)
# Headers of a request that must stay secret.
SECRET = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "x-amz-security-token")


@dataclass(slots=True)
class Received:
    """The answer to one call, and what went wrong with it."""

    credentials: Mapping[str, str] = field(default_factory=dict)  # Headers that authorize the call.
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)  # Case-insensitive.
    chunks: list[bytes] = field(default_factory=list)
    whole: bool = False
    failure: str = ""  # Why the answer is incomplete, in words.
    late: bool = False  # The call ran out of time.
    unsent: bool = False  # There was no connection: nothing can have been charged.
    misconfigured: bool = False  # This machine's settings are at fault: another try would fail in the same way.
    arrived: Callable[[Body], None] | None = None
    began: Callable[[int], None] | None = None  # Called with the status as soon as an answer begins.
    body: Body | None = None  # The answer, once its last byte has arrived.
    hidden: set[str] = field(default_factory=set)  # Values of the secret headers that were sent.

    async def read_body(self, status: int, headers: Mapping[str, str], stream: AsyncIterable[bytes]) -> None:
        """Read the body, up to MAX_BODY, and store it."""
        self.status, self.headers = status, headers
        if self.began is not None:
            self.began(status)
        size = 0
        async for chunk in stream:
            self.chunks.append(chunk[: MAX_BODY - size])
            size += len(chunk)
            if size > MAX_BODY:
                break
        self.whole = size <= MAX_BODY
        try:
            cost = float(headers.get(BILL, ""))
        except ValueError:
            cost = 0.0
        # A gateway reports a cost of 0 for a model without a price.
        bill = cost if 0 < cost < MOST_BILL else None
        wait, rate = retry_after(headers), read_rate(headers)
        self.body = Body(status, self.text, wait, whole=self.whole, bill=bill, rate=rate)
        if self.arrived is not None:
            self.arrived(self.body)

    def hide(self, headers: Mapping[str, str]) -> None:
        """Remember the secrets that were sent, in case the server repeats them: some SDKs sign requests themselves."""
        self.hidden |= {headers[name] for name in SECRET if name in headers}

    def broke(self, error: BaseException) -> None:
        """Record why the answer is incomplete, if an SDK's error comes from the connection."""
        client_error: BaseException | None = None
        cause: BaseException | None = error
        while cause is not None:
            client_error = cause if isinstance(cause, FAILURES) else client_error
            cause = cause.__cause__ or cause.__context__
        if client_error is None:
            return
        self.unsent = self.status is None and isinstance(client_error, UNSENT)
        self.failure = describe_failure(error, begun=self.status is not None)
        self.misconfigured = certificate_error(error) is not None

    @property
    def text(self) -> str:
        """The body as text, with the key masked if the server repeats it."""
        text = b"".join(self.chunks).decode("utf-8", "replace")
        for value in {*self.credentials.values(), *self.hidden}:
            key = value.rpartition(" ")[2]
            # An empty string occurs in every text.
            if key and key in text:
                text = text.replace(key, "[key]")
        return text


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks us to wait, from a number or an HTTP date; None without such a header."""
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
