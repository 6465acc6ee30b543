"""Sockets for the HTTP client, on asyncio alone; what a request sends leaves in one piece (docs/adr/0040).

The client's own backend goes through anyio, whose scopes and checkpoints take a fifth of a call's time and which sends
headers and body apart. `complete` limits the whole call, so the time limits of single steps are not looked at.
"""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

FULL = 256 * 1024
"""Bytes: more is not gathered in either direction."""
NEXT_ADDRESS_S = 0.25
"""A host's next address is tried beside one that has not answered by then (RFC 8305)."""


class Stream(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    """One connection."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.arrived: asyncio.Future[None] | None = None
        self.ended = False
        self.error: Exception | None = None
        self.room = asyncio.Event()
        self.room.set()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What has come, at most so much; b"" at the end. What was written leaves first. Raises ReadError."""
        self._send()
        if not (self.incoming or self.ended):
            self.arrived = asyncio.get_running_loop().create_future()
            await self.arrived
        if self.error is not None and not self.incoming:
            raise httpcore2.ReadError(str(self.error)) from self.error
        data = bytes(self.incoming[:max_bytes])
        del self.incoming[:max_bytes]
        if not self.ended:
            self.transport.resume_reading()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send it with the next `read`, or once it is much. Raises WriteError when the connection is gone."""
        if self.ended or self.transport.is_closing():
            raise httpcore2.WriteError("the connection is closed")
        self.outgoing += buffer
        if len(self.outgoing) > FULL:
            self._send()
            await self.room.wait()

    async def aclose(self) -> None:
        """Let it go, without waiting for the other side."""
        self.transport.close()
        asyncio.get_running_loop().call_soon(self.transport.abort)

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """The same connection, encrypted from here on. Raises ConnectError."""
        self._send()
        loop = asyncio.get_running_loop()
        try:
            found = await loop.start_tls(self.transport, self, ssl_context, server_hostname=server_hostname)
        except OSError as error:  # ssl.SSLError among them
            await self.aclose()
            raise httpcore2.ConnectError(str(error)) from error
        except BaseException:
            await self.aclose()
            raise
        assert found is not None
        self.transport = found
        return self

    def get_extra_info(self, info: str) -> Any:
        """`is_readable`: an idle connection is of no more use. It was closed, or nobody asked for what came."""
        if info == "is_readable":
            return self.ended or bool(self.incoming)
        return self.transport.get_extra_info("ssl_object") if info == "ssl_object" else None

    def _send(self) -> None:
        if self.outgoing:
            self.transport.write(bytes(self.outgoing))
            self.outgoing.clear()

    def _wake(self) -> None:
        if self.arrived is not None and not self.arrived.done():
            self.arrived.set_result(None)

    # What the event loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It stands."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Something came."""
        self.incoming += data
        if len(self.incoming) > FULL:
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Nothing more will come."""
        self.ended = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        """It is gone."""
        self.ended, self.error = True, error
        self.room.set()
        self._wake()

    def pause_writing(self) -> None:
        """The other side does not take it as fast."""
        self.room.clear()

    def resume_writing(self) -> None:
        """It does again."""
        self.room.set()


class Network(httpcore2.AsyncNetworkBackend):
    """Opens connections."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A new one. Raises ConnectError."""
        loop = asyncio.get_running_loop()
        try:
            _, stream = await loop.create_connection(Stream, host, port, happy_eyeballs_delay=NEXT_ADDRESS_S)
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        return stream
