"""The HTTP client under the SDKs: it keeps every body as it came, within bounds of size, whatever the SDK makes of it.

The SDKs hold no key: the header is set on the request as it leaves, so no SDK can log it.
"""

import asyncio
import os
import time
import zlib
from collections import deque
from collections.abc import AsyncIterable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import httpcore2
import httpx2

from corpus.errors import BadInput
from judges.providers.environment import distrust, proxy_for, tls_context, trust_advice
from judges.providers.network import Network
from judges.records import Body

MAX_BODY = 4_000_000
"""Bytes of one answer that are read and kept; a judge's answer has a few thousand."""
CONNECTIONS = 1024
"""Above any concurrency of one process: the account's limits hold calls back, not the pool."""
POOLS = 32
IDLE_S = 4.0
"""A connection that lies idle longer is closed: many servers do so after 5 s, and a call on a dead one is lost."""
LONGEST_WAIT = 86_400.0
UNSENT = (httpcore2.ConnectError, httpcore2.PoolTimeout, httpcore2.ProxyError, httpcore2.UnsupportedProtocol)
FAILURES = (*UNSENT, httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError)
OURS = {b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key", b"accept-encoding"}
"""Headers that are set on a request as it leaves, whatever the SDK says in them."""
SIGNED = {"authorization", "x-amz-security-token"}
"""Headers of a request that its SDK signed which nobody else may read."""


@dataclass(slots=True)
class Wire:
    """What one call sent as credentials, and what it received."""

    credentials: dict[str, str] = field(default_factory=dict)
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in small letters."""
    chunks: list[bytes] = field(default_factory=list)
    whole: bool = False
    too_long: bool = False
    failure: str = ""
    """Why no whole answer came, in the HTTP client's words."""
    unsent: bool = False
    """There was no connection: nothing can have been charged."""
    misconfigured: bool = False
    """This machine's own settings stand in the way: another try would fail alike."""
    arrived: Callable[[Body], None] | None = None
    began: Callable[[int], None] | None = None
    """Told the status as soon as an answer begins."""
    kept: Body | None = None
    """The answer, once its last byte is here."""

    def keep(self) -> None:
        """The last byte is here: whoever waits for the answer has it before anybody makes something of it."""
        assert self.status is not None
        self.kept = Body(self.status, self.text, self.retry_after, whole=self.whole)
        if self.arrived is not None:
            self.arrived(self.kept)

    @property
    def body(self) -> bytes:
        """The bytes as they came, unpacked where the server packed them."""
        packed = b"".join(self.chunks)
        if self.headers.get("content-encoding", "identity").lower() not in {"gzip", "deflate", "x-gzip"}:
            return packed
        try:
            return zlib.decompressobj(wbits=47).decompress(packed, MAX_BODY)
        except zlib.error:
            return packed

    @property
    def text(self) -> str:
        """The body as text, without the key should the server repeat it."""
        text = self.body.decode("utf-8", "replace")
        for value in self.credentials.values():
            key = value.rpartition(" ")[2]
            if key in text:
                text = text.replace(key, "[key]")
        return text

    @property
    def retry_after(self) -> float | None:
        """Seconds that the server asks us to wait, from seconds or an HTTP date; None without a usable header."""
        milliseconds = self.headers.get("retry-after-ms")
        value = self.headers.get("retry-after", "")
        if not (milliseconds or value):
            return None
        try:
            seconds = float(milliseconds) / 1000 if milliseconds else float(value)
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except (ValueError, TypeError, OverflowError):
                return None
        return min(max(seconds, 0.0), LONGEST_WAIT) if seconds == seconds else None


current: ContextVar[Wire] = ContextVar("wire")


class Passes:
    """Gives one call in each pass of the event loop its turn for the long work: making a request, reading an answer.

    An SDK takes milliseconds of the processor for either. A hundred of them in one pass would leave what arrives
    meanwhile in the socket, where it is paid for and not kept.
    """

    def __init__(self) -> None:
        self.waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Wait for it."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self.waiting.append(future)
        if len(self.waiting) == 1:
            loop.call_soon(self._next, loop)
        await future

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        future = self.waiting.popleft()
        if not future.done():
            future.set_result(None)
        if self.waiting:
            loop.call_soon(self._next, loop)


class KeepingTransport(httpx2.AsyncBaseTransport):
    """Reads each answer into the call's `Wire`, and only then hands it to the SDK.

    Each request makes its pool look at all its connections, so at 128 in flight one pool takes a fifth of the time of
    a call: they are spread over several.
    """

    def __init__(self, base_url: str, passes: Passes, signs: bool = False) -> None:
        self.passes, self.signs = passes, signs
        self.problem = ""
        """Why nothing can be sent. It is said at each call: answers that are kept can be read all the same."""
        context, proxy = None, None
        try:
            context, proxy = tls_context(base_url), proxy_for(base_url)
        except BadInput as error:
            self.problem = str(error)
        self.pools = [
            httpcore2.AsyncConnectionPool(
                ssl_context=context,
                proxy=proxy,
                max_connections=CONNECTIONS,
                max_keepalive_connections=CONNECTIONS,
                keepalive_expiry=IDLE_S,
                network_backend=Network(),
            )
            for _ in range(POOLS)
        ]
        self.busy = [0] * POOLS

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it with the call's credentials; the body is read here, up to MAX_BODY."""
        wire = current.get()
        if self.problem:
            wire.failure, wire.unsent, wire.misconfigured = self.problem, True, True
            raise httpx2.TransportError(wire.failure, request=request)
        place = self.busy.index(min(self.busy))
        self.busy[place] += 1
        try:
            leaving = _leaving(request, wire.credentials)
            if self.signs and not wire.credentials:
                leaving = _as_signed(request)
                wire.credentials = {name: value for name, value in request.headers.items() if name.lower() in SIGNED}
            response = await self.pools[place].handle_async_request(leaving)
            wire.status = response.status
            if wire.began is not None:
                wire.began(response.status)
            wire.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            await self._read(response, wire)
        except FAILURES as error:
            wire.unsent = isinstance(error, UNSENT)
            wire.failure = f"{type(error).__name__}: {error}".rstrip(": ")
            if untrusted := distrust(error):
                wire.failure, wire.misconfigured = f"{wire.failure}: {trust_advice(untrusted)}", True
            raise httpx2.TransportError(wire.failure, request=request) from error
        finally:
            self.busy[place] -= 1
        await self.passes.turn()
        headers = [pair for pair in response.headers if pair[0].lower() != b"content-encoding"]
        return httpx2.Response(wire.status, headers=headers, content=wire.body, request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self.pools:
            await pool.aclose()

    async def _read(self, response: httpcore2.Response, wire: Wire) -> None:
        assert isinstance(response.stream, AsyncIterable)
        size = 0
        try:
            async for chunk in response.stream:
                wire.chunks.append(chunk[: MAX_BODY - size])
                size += len(chunk)
                if size > MAX_BODY:
                    wire.too_long = True
                    wire.keep()
                    return
            wire.whole = True
            wire.keep()
        finally:
            await response.aclose()


def _leaving(request: httpx2.Request, credentials: dict[str, str]) -> httpcore2.Request:
    """The request with the call's credentials. The SDK's own object never has them."""
    headers = [pair for pair in request.headers.raw if pair[0].lower() not in OURS]
    headers += [(name.encode(), value.encode()) for name, value in credentials.items()]
    return _as_signed(request, [*headers, (b"accept-encoding", b"identity")])


def _as_signed(request: httpx2.Request, headers: list[tuple[bytes, bytes]] | None = None) -> httpcore2.Request:
    """The request as its SDK made it: a signature covers every header. Or with others."""
    url = request.url
    return httpcore2.Request(
        request.method,
        httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw if headers is None else headers,
        content=request.stream,
        extensions=request.extensions,
    )


def http_client(base_url: str, passes: Passes, signs: bool = False) -> httpx2.AsyncClient:
    """The connections of one account. It follows no redirect; `complete` sets the time limit.

    `signs`: a request without credentials of ours is signed by its SDK, and leaves as it is.
    """
    transport = KeepingTransport(base_url, passes, signs)
    return httpx2.AsyncClient(transport=transport, timeout=None, follow_redirects=False)


def only_loopback() -> bool:
    """Tests set QUORUM_LOOPBACK_ONLY=1, which makes a paid call impossible."""
    return os.environ.get("QUORUM_LOOPBACK_ONLY", "") not in {"", "0"}
