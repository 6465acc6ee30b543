"""Web search services as judges with role `web`, which return pages with their texts for a query."""

import json
from abc import abstractmethod
from typing import Any

from judges.errors import Rejected
from judges.providers.base import PostProvider
from judges.providers.received import Received
from judges.providers.replies import get_path, storable_text
from judges.records import Judge, ModelRequest, Reply

RESULTS = 5  # Pages of an answer, unless the judges file gives another number.
LONGEST_URL = 2_000


class WebSearchProvider(PostProvider):
    """Base of web searches: POST <base_url>/search. Subclasses define the request and the fields of the results."""

    texts: tuple[str, ...]  # Fields of a result that may contain the page's text; the first non-blank one counts.
    published: str  # Field of a result with the date of the page.

    @abstractmethod
    def body(self, query: str, results: int) -> dict[str, Any]:
        """Return the body of a request for so many results."""

    async def send(self, request: ModelRequest, received: Received) -> None:
        if request.role != "web":
            raise Rejected(f"{request.judge.name} searches the web: it cannot judge, write or rank")
        body = self.body(request.inputs.query, int(request.judge.parameters.get("results", RESULTS)))
        await self.post("search", body, request, received)

    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """Return the pages, best first, perhaps none; None unless there is a list of results with addresses."""
        entries = body.get("results")
        if not isinstance(entries, list):
            return None
        pages = [self._entry(page) for page in entries]
        if not all(page["url"] for page in pages):
            return None
        return Reply(text=json.dumps({"results": pages}, ensure_ascii=False), finish_reason="stop")

    def _entry(self, entry: object) -> dict[str, str]:
        texts = [storable_text(get_path(entry, name)) for name in self.texts]
        return {
            "url": storable_text(get_path(entry, "url"), LONGEST_URL),
            "title": storable_text(get_path(entry, "title"), 500),
            "text": next((text for text in texts if text.strip()), ""),
            "published": storable_text(get_path(entry, self.published), 40),
        }


class TavilyProvider(WebSearchProvider):
    """Provider for Tavily: `raw_content` is the page's text, `content` an excerpt of it."""

    texts = ("raw_content", "content")
    published = "published_date"

    def body(self, query: str, results: int) -> dict[str, Any]:
        return {"query": query, "max_results": results, "include_raw_content": True}


class ExaProvider(WebSearchProvider):
    """Provider for Exa, which has its own header for the key."""

    key_header, key_prefix = "x-api-key", ""
    texts = ("text",)
    published = "publishedDate"

    def body(self, query: str, results: int) -> dict[str, Any]:
        return {"query": query, "numResults": results, "contents": {"text": True}}
