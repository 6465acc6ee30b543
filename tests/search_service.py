"""A local server in the shape of Tavily's and Exa's search, with faults on demand."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.search_engines.server import Answer, Request, serve

Behaviour = tuple[int, str, dict[str, str]]  # Status, body, further headers.


def tavily(*pages: dict[str, Any]) -> str:
    """Tavily's answer: the page's text beside an excerpt."""
    found = [{"content": "an excerpt", "raw_content": page.get("text"), "score": 0.9, **page} for page in pages]
    return json.dumps({"query": "q", "results": found, "response_time": 0.1})


def exa(*pages: dict[str, Any]) -> str:
    found = [{"id": page["url"], "publishedDate": "2024-05-01T00:00:00.000Z", **page} for page in pages]
    return json.dumps({"requestId": "r", "results": found})


@dataclass
class SearchService:
    """`answers`: query to its behaviours, of which the last one stays; `asked`: path, headers and body of each call."""

    port: int = 0
    answers: dict[str, list[Behaviour]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    delay: float = 0.0  # Seconds before each answer.

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def script(self, query: str, *answers: str | Behaviour) -> None:
        """What a query is answered, one after another."""
        self.answers[query] = [(200, one, {}) if isinstance(one, str) else one for one in answers]

    def queries(self) -> list[str]:
        return [body["query"] for _path, _headers, body in self.asked]

    def behaviour(self, query: str) -> Behaviour:
        left = self.answers.get(query, [(200, tavily(), {})])
        return left.pop(0) if len(left) > 1 else left[0]

    async def answer(self, request: Request) -> Answer:
        body = json.loads(request.body)
        self.asked.append((request.path, request.headers, body))
        await asyncio.sleep(self.delay)
        status, text, headers = self.behaviour(body["query"])
        return Answer(status, text, headers=headers)


@contextlib.contextmanager
def search_service() -> Iterator[SearchService]:
    service = SearchService()
    with serve(service.answer) as service.port:
        yield service
