"""Fetching one page: http and https, every redirect checked anew, never longer or larger than the limits.

http.client follows nothing, reads no proxy from the environment and keeps no cookie by itself.
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

from corpus.url_fetch.addresses import FetchTarget, is_number, is_public, literal_address, place_of
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
    """The most that one page may cost, redirects included."""

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
    """The time that one page has, redirects included."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self.end - time.monotonic()

    def too_slow(self) -> NoPage:
        return NoPage("slow", seconds=int(self.seconds))


class _Pinned(http.client.HTTPConnection):
    """A connection to the place that was checked, whatever the name says by now."""

    def __init__(self, host: str, place: FetchTarget, seconds: float) -> None:
        super().__init__(f"[{host}]" if ":" in host else host, timeout=seconds)
        self.place = place
        self.plug: socket.socket | None = None

    def connect(self) -> None:
        self.sock = socket.create_connection(self.place[1], self.timeout)
        # A second handle: TLS takes the first one away, and `pull` is on another thread.
        self.plug = self.sock.dup()

    def pull(self) -> None:
        """End the connection from another thread: whoever reads gets an error or the end."""
        if self.plug:
            with contextlib.suppress(OSError):
                self.plug.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        super().close()
        if self.plug:
            self.plug.close()


class _PinnedTLS(_Pinned):
    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        super().connect()
        self.sock = tls_context().wrap_socket(self.sock, server_hostname=self.host)


def tls_context() -> ssl.SSLContext:
    """Return a context that checks certificates against the machine's own authorities."""
    return ssl.create_default_context()


def check_url(url: str) -> SplitResult:
    """Return an address in parts. NoPage unless it is http or https with a host, and no password or unusual port."""
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
    # Said where it is entered: nothing of the kind is ever on the public network.
    literal = literal_address(host)
    if is_number(host) or (literal and not is_public(literal)):
        raise NoPage("not-public", host=host)
    return parts


def fetch_page(url: str, limits: FetchLimits | None = None, progress: Progress = lambda received: None) -> FetchedPage:
    """Return the page behind an address, after its redirects. NoPage says why there is none."""
    limits = limits or FetchLimits()
    clock = _Clock(limits.seconds)
    for _step in range(limits.redirects + 1):
        with _send_request(check_url(url), clock) as response:
            if response.status not in REDIRECTS:
                return _read_response(url, response, limits, clock, progress)
            to = response.getheader("Location")
        if not to:
            raise NoPage("nowhere")
        try:
            url = urljoin(url, to)
        except ValueError:
            # A stranger's header: half an IPv6 address, for example, is no address at all.
            raise NoPage("address-none") from None
    raise NoPage("redirects", most=limits.redirects)


@contextlib.contextmanager
def _send_request(parts: SplitResult, clock: _Clock) -> Iterator[http.client.HTTPResponse]:
    """Yield the answer to one request; the connection ends with the block or with the time."""
    host = _encode_idna(parts.hostname or "")
    place = place_of(host, PORTS[parts.scheme])
    if clock.left <= 0:
        raise clock.too_slow()
    kind = _PinnedTLS if parts.scheme == "https" else _Pinned
    connection = kind(host, place, clock.left)
    # A socket's own limit begins anew with every byte: a server that drips would hold a worker for ever.
    watch = threading.Timer(clock.left, connection.pull)
    watch.daemon = True
    watch.start()
    try:
        path = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE)}" if parts.query else "")
        connection.request("GET", path, headers=HEADERS)
        yield connection.getresponse()
    except (OSError, http.client.HTTPException, zlib.error) as error:
        if clock.left <= 0 or isinstance(error, TimeoutError):
            raise clock.too_slow() from None
        words = " ".join(str(error).split())[:200] or "Unexpected error"
        raise NoPage("unread", host=host, error=words) from None
    finally:
        watch.cancel()
        connection.close()


def _encode_idna(host: str) -> str:
    try:
        return host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        raise NoPage("name", host=host) from None


def _read_response(
    url: str, response: http.client.HTTPResponse, limits: FetchLimits, clock: _Clock, progress: Progress
) -> FetchedPage:
    if response.status != 200:
        raise NoPage("status", status=response.status)
    media = response.headers.get_content_type()
    if media not in TYPES:
        raise NoPage("media", media=media)
    declared = response.getheader("Content-Length", "")
    # By its digits first: Python refuses to read a number of more than 4,300 of them.
    if declared.isdecimal() and (len(declared) > LONGEST_LENGTH or int(declared) > limits.bytes):
        raise _too_large(limits)
    body = b"".join(_decode_body(response, limits, clock, progress))
    return FetchedPage(url, media, response.headers.get_content_charset() or "", body)


def _decode_body(
    response: http.client.HTTPResponse, limits: FetchLimits, clock: _Clock, progress: Progress
) -> Iterator[bytes]:
    """Yield the body in pieces, unpacked, never more than the limit."""
    coding = (response.getheader("Content-Encoding") or "identity").strip().lower()
    if coding not in {"identity", "gzip", "x-gzip", "deflate"}:
        raise NoPage("packed", coding=coding)
    # 32: zlib looks by itself whether it is gzip or deflate.
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if coding != "identity" else None
    received = 0
    while piece := response.read1(_CHUNK):
        if clock.left <= 0:
            raise clock.too_slow()
        if unpack:
            # One byte above the limit is enough to know, so that a bomb is never unpacked.
            piece = unpack.decompress(piece, limits.bytes - received + 1)
        received += len(piece)
        if received > limits.bytes:
            raise _too_large(limits)
        progress(received)
        yield piece
    if clock.left <= 0:
        raise clock.too_slow()
    # http.client counts down what was declared: what is left has never come.
    if response.length:
        raise NoPage("cut-off")


def _too_large(limits: FetchLimits) -> NoPage:
    return NoPage("large", most=limits.bytes // 1_000_000 or 1)
