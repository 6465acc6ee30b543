"""A search engine of a shop on this machine: JSON over POST, with faults on demand and a log of every query.

As a module it is a process: `python -m tests.shop_search LOG DELAY` prints its port, and ends with its standard input.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PRODUCTS = 5_000
Fault = tuple[int, str]  # Status and body.


def product(number: int, text: str = "") -> dict[str, Any]:
    """A hit as the engine writes it."""
    words = text or f"Product {number} is made of parts {number % 7}, {number % 11} and {number % 13}. " * 6
    return {"id": f"p{number}", "name": f"Product {number}", "description": words, "score": 0.0}


@dataclass
class ShopSearch:
    """`answers`: query to its hits, or to a fault; queries without one get products that depend on their words."""

    port: int = 0
    delay: float = 0.0  # Seconds before each answer.
    answers: dict[str, list[dict[str, Any]] | Fault] = field(default_factory=dict)
    queries: list[str] = field(default_factory=list)
    flying: int = 0
    most_flying: int = 0
    log: Path | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """An [[endpoint]] table without its name."""
        return {
            "kind": "http",
            "base_url": f"http://127.0.0.1:{self.port}",
            "method": "POST",
            "path": "/search",
            "body": '{"q": "{{query}}", "n": {{k}}}',
            "hits": "results",
            "id": "id",
            "title": "name",
            "text": ["description"],
            "score": "score",
        }

    async def answer(self, query: str, count: int) -> Fault:
        """The status and the body for a query."""
        self.queries.append(query)
        self.flying += 1
        self.most_flying = max(self.flying, self.most_flying)
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            hits = self.answers.get(query)
            if isinstance(hits, tuple):
                return hits
            if hits is None:
                first = int(sha256(query.encode()).hexdigest()[:8], 16)
                hits = [product((first + 7 * place) % PRODUCTS) | {"score": 10 - place / 10} for place in range(count)]
            return 200, json.dumps({"results": hits[:count]})
        finally:
            self.flying -= 1
            if self.log:
                with self.log.open("a") as log:
                    log.write(json.dumps({"query": query, "answered": time.time()}) + "\n")

    async def serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after another."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                status, text = await self.answer(body["q"], int(body["n"]))
                sent = text.encode()
                lines = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
                writer.write(lines.encode() + sent)
                await writer.drain()
        writer.close()


@contextlib.contextmanager
def shop_search(delay: float = 0.0) -> Iterator[ShopSearch]:
    """A running engine in a thread of this process."""
    engine, loop, ready = ShopSearch(delay=delay), asyncio.new_event_loop(), threading.Event()
    stop: asyncio.Future[None] = loop.create_future()

    async def serve() -> None:
        server = await asyncio.start_server(engine.serve_connection, "127.0.0.1", 0)
        engine.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield engine
    finally:
        loop.call_soon_threadsafe(stop.set_result, None)
        thread.join()
        loop.close()


@contextlib.contextmanager
def shop_process(log: Path, delay: float) -> Iterator[ShopSearch]:
    """A running engine in a process of its own, which writes the queries that it answered into `log`."""
    command = [sys.executable, "-m", "tests.shop_search", str(log), str(delay)]
    child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin and child.stdout
    try:
        yield ShopSearch(port=int(child.stdout.readline()), delay=delay, log=log)
    finally:
        child.stdin.close()
        child.wait(10)
        child.stdout.close()


def logged(log: Path) -> list[dict[str, Any]]:
    """The queries that a process answered, in order: `query`, and when it was `answered`."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def main(log: Path, delay: float) -> None:
    """Serve until standard input is closed."""
    with shop_search(delay) as engine:
        engine.log = log
        print(engine.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
