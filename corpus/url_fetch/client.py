"""An HTTP client for addresses that people give: it connects only to addresses that were checked.

The name of a host is resolved once, its addresses are checked, and connections are opened to these; TLS checks the
certificate for the name. No proxy is read from the environment, no cookie is kept, every redirect is checked, and one
limit of time and of bytes holds for the whole request. httpx2's transport is used without its client, which would
add cookies, redirects and unlimited decompression.
"""

import asyncio
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from time import monotonic
from types import MappingProxyType
from urllib.parse import urljoin, urlsplit

import httpx2
from django.conf import settings

from corpus.url_fetch.addresses import LONGEST_URL, FetchTarget, WebAddress, bracket_host, check_url, find_targets
from corpus.url_fetch.problems import NoPage

REDIRECTS = frozenset({301, 302, 303, 307, 308})
# With these a request of any method and its body are sent again, with the others it becomes a GET.
REPEATED = frozenset({307, 308})
# Headers without secrets; all others are taken for keys.
PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
# Seconds for which the addresses of a name are used again, and idle connections are held.
KEEP_S = 30.0
NO_HEADERS: Mapping[str, str] = MappingProxyType({})

Origin = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits for one request, redirects included. `bytes`: of the decompressed body; `url`: characters.

    redirects: 0 for a client that follows none, to which a redirect is a response like others.
    """

    bytes: int = 5_000_000
    seconds: float = 20.0
    redirects: int = 5
    url: int = LONGEST_URL


@dataclass(frozen=True, slots=True)
class WebResponse:
    """A response with its whole body, decompressed. `url`: after redirects; `seconds`: without waiting for a turn."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class WebStream:
    """A response whose body is not yet read. `headers`: names in any case."""

    url: str
    status: int
    headers: Mapping[str, str]
    host: str
    start: float
    limits: FetchLimits
    source: httpx2.Response

    async def raw_pieces(self) -> AsyncGenerator[bytes]:
        """Yield the body as it was sent, in pieces. Raises NoPage where the connection fails."""
        try:
            async for piece in self.source.aiter_raw():
                yield piece
        except httpx2.RemoteProtocolError:
            raise NoPage("cut-off") from None
        except (httpx2.HTTPError, OSError) as error:
            raise _describe(error, self.host, self.limits) from None

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the decompressed body in pieces. Raises NoPage above the limit and where the connection fails."""
        declared = self.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self.limits.bytes:
            raise self._too_large()
        coding = self.headers.get("content-encoding", "identity").strip().lower()
        if coding not in {"identity", "gzip", "x-gzip", "deflate"}:
            raise NoPage("packed", coding=coding)
        # 32: zlib detects gzip or deflate by itself.
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if coding != "identity" else None
        received = 0
        async with aclosing(self.raw_pieces()) as pieces:
            async for piece in pieces:
                if unpack:
                    try:
                        # At most one byte above the limit, so that a decompression bomb is never unpacked.
                        piece = unpack.decompress(piece, self.limits.bytes - received + 1)
                    except zlib.error as error:
                        raise _describe(error, self.host, self.limits) from None
                received += len(piece)
                if received > self.limits.bytes:
                    raise self._too_large()
                yield piece
        if unpack and self.source.num_bytes_downloaded and not unpack.eof:
            raise NoPage("cut-off")

    def _too_large(self) -> NoPage:
        return NoPage("large", most=self.limits.bytes // 1_000_000 or 1)


class WebClient:
    """Sends requests to checked addresses and keeps the connections: an asynchronous context manager.

    allowed: "host:port" of servers whose addresses may be private (settings.SEARCH_HOSTS). any_port: whether public
    hosts may have any port. connections: requests in flight; more wait for their turn, which no limit of time counts.
    """

    def __init__(
        self,
        *,
        allowed: frozenset[str] = frozenset(),
        any_port: bool = False,
        limits: FetchLimits | None = None,
        connections: int = 20,
    ) -> None:
        self.allowed, self.any_port, self.limits = allowed, any_port, limits or FetchLimits()
        self.connections = connections
        self._turns = asyncio.Semaphore(connections)
        self._lookups = asyncio.Lock()
        # One pool for each origin: two names with the same address need two certificates.
        self._transports: dict[Origin, httpx2.AsyncHTTPTransport] = {}
        self._targets: dict[Origin, tuple[list[FetchTarget], float]] = {}

    async def __aenter__(self) -> "WebClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        for transport in self._transports.values():
            await transport.aclose()

    async def send(
        self, method: str, url: str, *, headers: Mapping[str, str] = NO_HEADERS, content: bytes | None = None
    ) -> WebResponse:
        """Send a request and return the response, of whatever status.

        Redirects are followed: of GET all, of other methods those that keep the method. To another origin goes none
        of the headers that may hold a secret. Raises NoPage.
        """
        async with self.stream(method, url, headers=headers, content=content) as response:
            body = b"".join([piece async for piece in response.pieces()])
            return WebResponse(response.url, response.status, response.headers, body, monotonic() - response.start)

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, *, headers: Mapping[str, str] = NO_HEADERS, content: bytes | None = None
    ) -> AsyncIterator[WebStream]:
        """Send a request as `send` does, and yield the response before its body; the time limit holds for the block."""
        clean_headers = {name.lower(): value.strip() for name, value in headers.items()}
        for name, value in clean_headers.items():
            # The error does not say the value, which may be a secret.
            if not (value.isascii() and (value + name).isprintable()):
                raise NoPage("header", name=name)
        async with self._turns:
            start = monotonic()
            try:
                async with asyncio.timeout(self.limits.seconds):
                    response = await self._follow(method, url, clean_headers, content, start)
                    try:
                        yield response
                    finally:
                        await response.source.aclose()
            except TimeoutError:
                raise _too_slow(self.limits) from None

    async def _follow(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, start: float
    ) -> WebStream:
        """Return the first response that is no redirect."""
        for _step in range(self.limits.redirects + 1):
            address = self.check(url)
            is_secret = not PLAIN_HEADERS.issuperset(headers)
            if is_secret and address.scheme == "http" and not address.is_allowed:
                raise NoPage("plain-http", host=address.host)
            response = await self._request(method, address, headers, content)
            status = response.status_code
            if status not in REDIRECTS or not self.limits.redirects:
                return WebStream(url, status, response.headers, address.host, start, self.limits, response)
            location = response.headers.get("location")
            await response.aclose()
            if not location:
                raise NoPage("nowhere")
            try:
                # The header may be malformed, for example half an IPv6 address.
                url = urljoin(url, location)
                parts = urlsplit(url)
            except ValueError:
                raise NoPage("address-none") from None
            if method != "GET" and status not in REPEATED:
                # As a GET without its body, the request would have another answer and no error.
                raise NoPage("moved", url=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:200])
            if self.check(url).origin != address.origin:
                headers = {name: value for name, value in headers.items() if name in PLAIN_HEADERS}
        raise NoPage("redirects", most=self.limits.redirects)

    def check(self, url: str) -> WebAddress:
        """Return the parts of a URL. Raises NoPage for one to which no request may go."""
        return check_url(url, allowed=self.allowed, any_port=self.any_port, longest=self.limits.url)

    def locate(self, address: WebAddress) -> list[FetchTarget]:
        """Return the addresses of a host, each of them checked; it blocks. Raises NoPage."""
        return find_targets(address)

    async def _request(
        self, method: str, address: WebAddress, headers: Mapping[str, str], content: bytes | None
    ) -> httpx2.Response:
        """Return the response to one request, from the first address of the host that takes a connection."""
        origin = address.origin
        # The addresses of a host are looked up once for all requests of the next seconds.
        async with self._lookups:
            targets, until = self._targets.get(origin, ([], 0.0))
            if monotonic() >= until:
                # Resolving blocks, so it runs in a thread beside the other requests.
                targets = await asyncio.to_thread(self.locate, address)
                self._targets[origin] = targets, monotonic() + KEEP_S
        if origin not in self._transports:
            pool = httpx2.Limits(
                max_connections=self.connections,
                max_keepalive_connections=self.connections,
                keepalive_expiry=KEEP_S,
            )
            self._transports[origin] = httpx2.AsyncHTTPTransport(verify=tls_context(), trust_env=False, limits=pool)
        sent = {
            "accept": "*/*",
            "user-agent": f"Quorum/{settings.VERSION}",
            **headers,
            "accept-encoding": "identity",
            "host": address.host_header,
        }
        extensions = {
            # The URL has the IP address; the certificate must be valid for the name.
            "sni_hostname": address.host,
            # The exact bytes, without the quoting of httpx2.
            "target": address.target.encode(),
            # An address without an answer leaves time for the next one.
            "timeout": {"connect": self.limits.seconds / len(targets)},
        }
        failure: Exception | None = None
        for _number, (number, port) in targets:
            try:
                request = httpx2.Request(
                    method,
                    f"{address.scheme}://{bracket_host(number)}:{port}/",
                    headers=sent,
                    content=content,
                    extensions=extensions,
                )
                return await self._transports[origin].handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
                raise _describe(error, address.host, self.limits) from None
        self._targets.pop(origin, None)
        raise _describe(failure, address.host, self.limits)


@cache
def tls_context() -> ssl.SSLContext:
    """Return the context that checks certificates against this machine's authorities; loading these is slow."""
    return httpx2.create_ssl_context()


def _too_slow(limits: FetchLimits) -> NoPage:
    return NoPage("slow", seconds=int(limits.seconds))


def _describe(error: Exception | None, host: str, limits: FetchLimits) -> NoPage:
    """Return the problem of a connection that failed."""
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return _too_slow(limits)
    cause: BaseException | None = error
    while isinstance(error, httpx2.ConnectError) and cause:
        if isinstance(cause, ssl.SSLError):
            words = getattr(cause, "verify_message", "") or (cause.reason or "no TLS").replace("_", " ").lower()
            return NoPage("tls", host=host, error=words.rstrip("."))
        cause = cause.__cause__ or cause.__context__
    return NoPage("unread", host=host, error=" ".join(str(error).split())[:200] or "Unexpected error")
