"""Connections of model calls: the HTTP client, its proxy, the certificates that it trusts, and what its errors mean."""

import os
import socket
import ssl
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2

from corpus.errors import BadInput

CONNECTIONS = 1024  # Above any concurrency of a process: the account's limits hold back calls, not the pool.
# Idle connections are closed after this time: many servers do so after 5 s, and a call on a dead one is lost.
IDLE_S = 4.0
# OpenSSL's codes of problems that no other certificate authority would solve.
OTHER_NAME, OTHER_TIME = (62, 64), (9, 10)


@dataclass(frozen=True, slots=True)
class ConnectionRoute:
    """The route to an address. `tls` is None without encryption."""

    tls: ssl.SSLContext | None = None
    proxy: httpx2.Proxy | None = None
    # Why nothing can be sent. It is raised only by a call, so that stored answers can still be read.
    problem: str = ""

    @property
    def is_socks(self) -> bool:
        """Whether the proxy speaks SOCKS; aiohttp supports only HTTP proxies."""
        return self.proxy is not None and self.proxy.url.scheme.startswith("socks")


def route_to(base_url: str) -> ConnectionRoute:
    """Return the route to the address, by the proxy and the certificates that the environment names."""
    try:
        return ConnectionRoute(tls_context(base_url), proxy_for(base_url))
    except BadInput as error:
        return ConnectionRoute(problem=str(error))


def http_client(kind: type[httpx2.AsyncClient], route: ConnectionRoute, **options: Any) -> httpx2.AsyncClient:
    """Return an HTTP client for one account. `kind`: the SDK's class. Only the whole call has a time limit."""
    limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=IDLE_S)
    # With a SOCKS proxy, httpx2's own client takes the place of the SDK's, which does not support one.
    return (httpx2.AsyncClient if route.is_socks else kind)(
        verify=route.tls or False,  # Without TLS there is nothing to verify, and no need to read certificates.
        proxy=route.proxy,
        trust_env=False,  # The route already includes the environment.
        limits=limits,
        timeout=None,
        follow_redirects=False,
        **options,
    )


def tls_context(base_url: str) -> ssl.SSLContext | None:
    """Return the TLS context of an address; None without encryption. Raises BadInput for an unusable SSL_CERT_FILE."""
    if not base_url.startswith("https"):
        return None  # Reading the certificates takes longer than opening all connections.
    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # Includes ssl.SSLError.
        path = os.environ.get("SSL_CERT_FILE", "")
        if not path:
            raise BadInput(f"The certificates of this machine cannot be read: {error}") from None
        reason = error.strerror if error.strerror and not isinstance(error, ssl.SSLError) else "it holds none"
        message = f"SSL_CERT_FILE names {path}, which cannot be read as certificates in PEM form ({reason})"
        raise BadInput(f"{message}: correct it, or unset it to trust what the system trusts") from None


def proxy_for(base_url: str) -> httpx2.Proxy | None:
    """Return the proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names, if any. Raises BadInput."""
    parts = urlsplit(base_url)
    if is_loopback(base_url) or proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    if not address:
        return None
    try:
        proxy = httpx2.Proxy(address)
        shown_address = f"{proxy.url.scheme}://{proxy.url.host}" + (f":{proxy.url.port}" if proxy.url.port else "")
    except ValueError as error:
        variable = f"{parts.scheme}_proxy" if proxies.get(parts.scheme) else "all_proxy"
        raise BadInput(f"The environment variable {variable} names no usable proxy ({error})") from None
    if proxy.url.scheme.startswith("socks") and find_spec("socksio") is None:
        raise BadInput(
            f"The proxy {shown_address} speaks SOCKS, for which the package socksio is missing: install it beside "
            "Quorum (.venv/bin/python -m pip install socksio), or name an HTTP proxy in HTTPS_PROXY"
        )
    if proxy.auth and not proxy.url.scheme.startswith("socks"):
        authorization = aiohttp.encode_basic_auth(*proxy.auth)
        return httpx2.Proxy(shown_address, headers={"Proxy-Authorization": authorization})
    return proxy


def only_loopback() -> bool:
    """Return whether only this machine may be called: tests set QUORUM_LOOPBACK_ONLY=1 to prevent paid calls."""
    return os.environ.get("QUORUM_LOOPBACK_ONLY", "") not in {"", "0"}


def is_loopback(base_url: str) -> bool:
    """Return whether the address stays on this machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(base_url: str) -> bool:
    """Return whether the address belongs to a private network."""
    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_private
    except ValueError:
        return False


FAILURES = (aiohttp.ClientError, httpx2.RequestError)
# Errors of HTTP clients and of the operating system, with their meaning in words. The first match counts.
_MEANINGS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (ssl.SSLError, "it does not speak TLS as https needs it: is the base_url of a server that speaks http?"),
    ((socket.gaierror, aiohttp.ClientConnectorDNSError), "no machine of this name is known: look at the base_url"),
    (ConnectionRefusedError, "nothing answers at this address: is the server running, and the base_url right?"),
    ((aiohttp.ClientHttpProxyError, httpx2.ProxyError), "the proxy on the way to it does not let the call through"),
    ((aiohttp.InvalidURL, httpx2.UnsupportedProtocol, httpx2.InvalidURL), "the base_url is no address of a server"),
    ((httpx2.DecodingError, zlib.error), "its answer is packed in a way that cannot be unpacked"),
)
_CLOSED = (
    *(aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, ConnectionResetError, BrokenPipeError),
    *(httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError),
)
# Checked last: the SDKs' adapter reports any broken connection of aiohttp as a timeout.
_LATE = (aiohttp.ServerTimeoutError, httpx2.TimeoutException, TimeoutError)


def describe_failure(error: BaseException, *, begun: bool = False) -> str:
    """Explain why a call brought no whole answer, since HTTP clients' messages are written for programmers.

    `begun`: whether the answer had begun to arrive.
    """
    if untrusted := certificate_error(error):
        return f"its certificate is not trusted ({untrusted.verify_message}): {certificate_advice(untrusted)}"
    causes = list(_list_causes(error))
    closed_message = f"the connection was closed {'in the middle of the answer' if begun else 'before an answer came'}"
    late_message = "no connection, or no answer, came within the time that the client waits"
    for kinds, words in (*_MEANINGS, (_CLOSED, closed_message), (_LATE, late_message)):
        if any(isinstance(cause, kinds) for cause in causes):
            proxy_refusal = next((cause for cause in causes if isinstance(cause, aiohttp.ClientHttpProxyError)), None)
            return f"{words} ({proxy_refusal.status} {proxy_refusal.message})" if proxy_refusal is not None else words
    # No route or no network: the operating system describes it.
    system_error = next((cause for cause in causes if isinstance(cause, OSError) and cause.strerror), None)
    if not begun and system_error is not None and not isinstance(system_error, ConnectionError):
        return f"no connection to it can be made ({system_error.strerror})"
    return closed_message


def is_of_connection(error: BaseException) -> bool:
    """Return whether an error comes from the connection to a server, and not from our code."""
    return any(isinstance(cause, (*FAILURES, OSError)) for cause in _list_causes(error))


def _list_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, the innermost last."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        # aiohttp stores the operating system's error in an attribute.
        inner = getattr(cause, "os_error", None)
        if isinstance(inner, OSError) and inner is not cause:
            yield inner
        cause = cause.__cause__ or cause.__context__


def certificate_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """Return the certificate error behind an error of the HTTP client; None if the certificate was not the cause."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    # aiohttp's error is a subclass too, and stores OpenSSL's own in an attribute.
    return cause.certificate_error if isinstance(cause, aiohttp.ClientConnectorCertificateError) else cause  # type: ignore[return-value]


def certificate_advice(error: ssl.SSLCertVerificationError) -> str:
    """Explain what to do about a certificate that is not trusted."""
    if error.verify_code in OTHER_NAME:
        return "the certificate is of another name: correct the base_url"
    if error.verify_code in OTHER_TIME:
        return "the certificate is not valid today: look at this machine's clock, or tell the operator of the server"
    path = os.environ.get("SSL_CERT_FILE")
    if path:
        return f"SSL_CERT_FILE names {path}: add the certificate of the authority that signed the server's to it"
    return (
        "the server's certificate is signed by an authority that this machine does not trust (a proxy of your network, "
        "or a server of your own): name a PEM file with the authority's certificate in SSL_CERT_FILE"
    )
