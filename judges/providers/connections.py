"""How calls leave this machine: which client, through which proxy, and whose certificates it trusts."""

import asyncio
import ssl
from collections import deque
from dataclasses import dataclass
from typing import Any

import httpx2

from corpus.errors import BadInput
from judges.providers.environment import proxy_for, tls_context

CONNECTIONS = 1024  # Above any concurrency of one process: the account's limits hold calls back, not the pool.
# A connection that lies idle longer is closed: many servers do so after 5 s, and a call on a dead one is lost.
IDLE_S = 4.0


@dataclass(frozen=True, slots=True)
class ConnectionRoute:
    """The way to an address. `tls` is None where nothing is encrypted."""

    tls: ssl.SSLContext | None = None
    proxy: httpx2.Proxy | None = None
    # Why nothing can be sent. It is said at each call: answers that are kept can be read all the same.
    problem: str = ""

    @property
    def is_socks(self) -> bool:
        """aiohttp speaks to HTTP proxies alone."""
        return self.proxy is not None and self.proxy.url.scheme.startswith("socks")


def route_to(base_url: str) -> ConnectionRoute:
    """Return the way to the address that the environment describes."""
    try:
        return ConnectionRoute(tls_context(base_url), proxy_for(base_url))
    except BadInput as error:
        return ConnectionRoute(problem=str(error))


def http_client(kind: type[httpx2.AsyncClient], route: ConnectionRoute, **more: Any) -> httpx2.AsyncClient:
    """Return the connections of one account, `kind` being the SDK's client; the whole call has the only time limit."""
    limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=IDLE_S)
    # For a SOCKS proxy httpx2's own client takes the place of the SDK's, which cannot speak to one.
    return (httpx2.AsyncClient if route.is_socks else kind)(
        verify=route.tls or False,  # without TLS there is nothing to verify, and no certificates need be read
        proxy=route.proxy,
        trust_env=False,  # the route has it all
        limits=limits,
        timeout=None,
        follow_redirects=False,
        **more,
    )


class Passes:
    """Gives one call in each pass of the event loop its turn for the long work: making a request, reading an answer."""

    # An SDK takes milliseconds of the processor for either. A hundred of them in one pass would leave what arrives
    # meanwhile in the socket, where it is paid for and not kept.
    def __init__(self) -> None:
        self.waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
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
