"""A small HTTP server on this machine, in a thread of its own: a coroutine answers each request."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """A request; names of headers are in lower case, `path` is as it was sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, body, media type and further headers."""

    status: int
    body: str
    media: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


Answering = Callable[[Request], Awaitable[Answer]]


async def serve_connection(answering: Answering, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection, one after another."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        while True:
            letter = await reader.readexactly(1)
            if not letter.isalpha():  # TLS, as no method begins
                break
            first, *lines = (letter + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines) if name}
            method, path, _ = first.split(" ", 2)
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            answer = await answering(Request(method, path, headers, body))
            sent = answer.body.encode()
            headers = {"Content-Type": answer.media, "Content-Length": len(sent), **answer.headers}
            head = [f"HTTP/1.1 {answer.status} -", *(f"{name}: {value}" for name, value in headers.items())]
            writer.write("\r\n".join([*head, "", ""]).encode() + sent)
            await writer.drain()
    writer.close()


@contextlib.contextmanager
def serve(answering: Answering) -> Iterator[int]:
    loop, ports = asyncio.new_event_loop(), []
    ready = threading.Event()
    stop: asyncio.Future[None] = loop.create_future()

    async def run() -> None:
        server = await asyncio.start_server(
            lambda reader, writer: serve_connection(answering, reader, writer), "127.0.0.1", 0
        )
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await stop
        server.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections)
        await asyncio.sleep(0)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    ready.wait()
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(stop.set_result, None)
        thread.join()
        loop.close()
