"""A search engine of a shop on this machine: JSON over POST, with faults on demand and a log of every query.

As a module it is a process: `python -m tests.shop_search LOG DELAY` prints its port, and ends with its standard input.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.search_engines.http import Http
from tests.search_engines.server import Answer, Request

ROOT = Path(__file__).parents[1]
PRODUCTS = 5_000
Fault = tuple[int, str] | tuple[int, str, str]  # Status, body and media type.


def product(number: int, text: str = "") -> dict[str, Any]:
    """A hit as the engine writes it."""
    words = text or f"Product {number} is made of parts {number % 7}, {number % 11} and {number % 13}. " * 6
    return {"id": f"p{number}", "name": f"Product {number}", "description": words, "score": 0.0}


@dataclass
class ShopSearch(Http):
    """`answers`: query to its hits, or to a fault; queries without one get `stock`, or products by their words."""

    port: int = 0
    key: str = ""
    delay: float = 0.0  # Seconds before each answer.
    answers: dict[str, list[dict[str, Any]] | Fault] = field(default_factory=dict)
    stock: list[dict[str, Any]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    flying: int = 0
    most_flying: int = 0
    log: Path | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, Any]:
        """An [[endpoint]] table without its name, for an engine without a key."""
        return {"kind": "http", "base_url": self.address, "method": "POST"} | {
            name: value for name, value in self.options.items() if name != "header_env"
        }

    def plan(self, query: str, document: Any, status: int = 200, media: str = "application/json") -> None:
        """Have a query answered by a document, or by a text as it is."""
        self.answers[query] = (status, document if isinstance(document, str) else json.dumps(document), media)

    def hits(self, query: str, count: int) -> list[dict[str, Any]]:
        hits = self.answers.get(query)
        if hits is None and not self.stock:
            first = int(sha256(query.encode()).hexdigest()[:8], 16)
            return [product((first + 7 * place) % PRODUCTS) | {"score": 10 - place / 10} for place in range(count)]
        return hits[:count] if isinstance(hits, list) else self.stock[:count]

    async def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        answer = await super().answer(request)
        if answer.status != 200:
            return answer
        query = json.loads(request.body)["q"]
        self.queries.append(query)
        self.flying += 1
        self.most_flying = max(self.flying, self.most_flying)
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            fault = self.answers.get(query)
            return Answer(*fault) if isinstance(fault, tuple) else answer
        finally:
            self.flying -= 1
            if self.log:
                with self.log.open("a") as log:
                    log.write(json.dumps({"query": query, "answered": time.time()}) + "\n")


@contextlib.contextmanager
def shop_search(delay: float = 0.0) -> Iterator[ShopSearch]:
    """A running engine in a thread of this process."""
    with ShopSearch(delay=delay).running() as engine:
        yield engine


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
