"""Fetching one page over http or https, with every redirect checked, within limits of time and size.

http.client is used because it follows no redirects, reads no proxy from the environment and keeps no cookies.
"""

import contextlib
import http.client
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from django.conf import settings

from corpus.url_fetch.addresses import FetchTarget, is_number, is_public, literal_address, resolve_public
from corpus.url_fetch.problems import NoPage

PORTS = {"http": 80, "https": 443}
TYPES = ("text/html", "application/xhtml+xml", "text/plain")
REDIRECTS = frozenset({301, 302, 303, 307, 308})
LONGEST_URL = 2_000
LONGEST_LENGTH = 18  # Digits of a declared length.
_CHUNK = 65_536
_SAFE = "%/:=&?~+!$,;'@()*[]"
HEADERS = {
    "User-Agent": f"Quorum/{settings.VERSION} (a person asked for this page)",
    "Accept": "text/html,application/xhtml+xml,text/plain;q=0.9",
    "Accept-Encoding": "identity",
    "Connection": "close",
}
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits for one page, redirects included."""

    bytes: int = 5_000_000
    seconds: float = 20.0
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A fetched page: `body` without transport encoding, `charset` as declared or ""."""

    url: str
    media: str
    charset: str
    body: bytes

    @property
    def sha256(self) -> str:
        return sha256(self.body).hexdigest()


class _Clock:
    """The time limit of one page, redirects included."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        return self.end - time.monotonic()

    def too_slow(self) -> NoPage:
        return NoPage("slow", seconds=int(self.seconds))


class _Pinned(http.client.HTTPConnection):
    """A connection to the address that was checked, even if the name now resolves to another."""

    def __init__(self, host: str, target: FetchTarget, seconds: float) -> None:
        super().__init__(f"[{host}]" if ":" in host else host, timeout=seconds)
        self.target = target
        self.handle: socket.socket | None = None

    def connect(self) -> None:
        self.sock = socket.create_connection(self.target[1], self.timeout)
        # A second handle, for `abort` on another thread: TLS detaches the first one.
        self.handle = self.sock.dup()

    def abort(self) -> None:
        """End the connection from another thread: reading then fails or ends."""
        if self.handle:
            with contextlib.suppress(OSError):
                self.handle.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        super().close()
        if self.handle:
            self.handle.close()


class _PinnedTLS(_Pinned):
    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        super().connect()
        self.sock = tls_context().wrap_socket(self.sock, server_hostname=self.host)


def tls_context() -> ssl.SSLContext:
    """Return a context that checks certificates against the machine's own authorities."""
    return ssl.create_default_context()


def check_url(url: str) -> SplitResult:
    """Return the parts of an address. Raises NoPage unless it is http(s) with a host, no password and no odd port."""
    if len(url) > LONGEST_URL or any(character.isspace() or not character.isprintable() for character in url):
        raise NoPage("address-odd")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise NoPage("address-none") from None
    if parts.scheme not in PORTS or not host:
        raise NoPage("scheme")
    if parts.username is not None or parts.password is not None:
        raise NoPage("password")
    if port not in (None, PORTS[parts.scheme]):
        raise NoPage("port")
    # Refused here, so that the form can say so: such addresses are never public.
    literal = literal_address(host)
    if is_number(host) or (literal and not is_public(literal)):
        raise NoPage("not-public", host=host)
    return parts


def fetch_page(url: str, limits: FetchLimits | None = None, progress: Progress = lambda received: None) -> FetchedPage:
    """Fetch the page of an address, following redirects. Raises NoPage with the reason where that fails."""
    limits = limits or FetchLimits()
    clock = _Clock(limits.seconds)
    for _step in range(limits.redirects + 1):
        with _send_request(check_url(url), clock) as response:
            if response.status not in REDIRECTS:
                if response.status != 200:
                    raise NoPage("status", status=response.status)
                media = response.headers.get_content_type()
                if media not in TYPES:
                    raise NoPage("media", media=media)
                declared = response.getheader("Content-Length", "")
                # Digits are counted first: Python refuses to parse a number of more than 4,300.
                if declared.isdecimal() and (len(declared) > LONGEST_LENGTH or int(declared) > limits.bytes):
                    raise _too_large(limits)
                body = b"".join(_decode_body(response, limits, clock, progress))
                return FetchedPage(url, media, response.headers.get_content_charset() or "", body)
            location = response.getheader("Location")
        if not location:
            raise NoPage("nowhere")
        try:
            url = urljoin(url, location)
        except ValueError:
            # The header may be malformed, for example half an IPv6 address.
            raise NoPage("address-none") from None
    raise NoPage("redirects", most=limits.redirects)


@contextlib.contextmanager
def _send_request(parts: SplitResult, clock: _Clock) -> Iterator[http.client.HTTPResponse]:
    """Yield the response to one request; the connection ends with the block or when time is up."""
    host = parts.hostname or ""
    try:
        host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        raise NoPage("name", host=host) from None
    target = resolve_public(host, PORTS[parts.scheme])
    if clock.remaining <= 0:
        raise clock.too_slow()
    kind = _PinnedTLS if parts.scheme == "https" else _Pinned
    connection = kind(host, target, clock.remaining)
    # A socket's timeout restarts with every byte, so a server that sends slowly could occupy a worker forever.
    timer = threading.Timer(clock.remaining, connection.abort)
    timer.daemon = True
    timer.start()
    try:
        path = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE)}" if parts.query else "")
        connection.request("GET", path, headers=HEADERS)
        yield connection.getresponse()
    except (OSError, http.client.HTTPException, zlib.error) as error:
        if clock.remaining <= 0 or isinstance(error, TimeoutError):
            raise clock.too_slow() from None
        words = " ".join(str(error).split())[:200] or "Unexpected error"
        raise NoPage("unread", host=host, error=words) from None
    finally:
        timer.cancel()
        connection.close()


def _decode_body(
    response: http.client.HTTPResponse, limits: FetchLimits, clock: _Clock, progress: Progress
) -> Iterator[bytes]:
    """Yield the decompressed body in pieces. Raises NoPage above the limit."""
    coding = (response.getheader("Content-Encoding") or "identity").strip().lower()
    if coding not in {"identity", "gzip", "x-gzip", "deflate"}:
        raise NoPage("packed", coding=coding)
    # 32: zlib detects gzip or deflate by itself.
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if coding != "identity" else None
    received = 0
    while piece := response.read1(_CHUNK):
        if clock.remaining <= 0:
            raise clock.too_slow()
        if unpack:
            # At most one byte above the limit, so that a decompression bomb is never unpacked.
            piece = unpack.decompress(piece, limits.bytes - received + 1)
        received += len(piece)
        if received > limits.bytes:
            raise _too_large(limits)
        progress(received)
        yield piece
    if clock.remaining <= 0:
        raise clock.too_slow()
    # http.client counts the declared length down: what remains was never received.
    if response.length:
        raise NoPage("cut-off")


def _too_large(limits: FetchLimits) -> NoPage:
    return NoPage("large", most=limits.bytes // 1_000_000 or 1)
