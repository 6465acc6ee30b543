"""Web search services as judges of role `web`: a query in, pages with texts out."""

import json
from abc import abstractmethod
from typing import Any

from judges.errors import Rejected
from judges.providers.base import PostProvider
from judges.providers.received import Received
from judges.providers.replies import get_path, storable_text
from judges.records import Judge, ModelRequest, Reply

RESULTS = 5  # Pages of an answer, unless the judges file says otherwise.
LONGEST_URL = 2_000


class WebSearchProvider(PostProvider):
    """Base of web searches: POST <base_url>/search. Subclasses say what is asked, and where results keep their text."""

    texts: tuple[str, ...]  # Fields of an entry that may hold the page's text; the first that holds some counts.
    published: str  # Its field with the date of the page.

    @abstractmethod
    def body(self, query: str, results: int) -> dict[str, Any]:
        """Return the body of a request."""

    async def send(self, request: ModelRequest, received: Received) -> None:
        if request.role != "web":
            raise Rejected(f"{request.judge.name} searches the web: it cannot judge, write or rank")
        body = self.body(request.inputs.query, int(request.judge.parameters.get("results", RESULTS)))
        await self.post("search", body, request, received)

    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """The pages, best first; [] where nothing was found. None where it has no list of entries with addresses."""
        listed = body.get("results")
        if not isinstance(listed, list):
            return None
        found = [self._entry(one) for one in listed]
        if not all(one["url"] for one in found):
            return None
        return Reply(text=json.dumps({"results": found}, ensure_ascii=False), finish_reason="stop")

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
    """Provider for Exa, whose key goes in a header of its own."""

    key_header, key_prefix = "x-api-key", ""
    texts = ("text",)
    published = "publishedDate"

    def body(self, query: str, results: int) -> dict[str, Any]:
        return {"query": query, "numResults": results, "contents": {"text": True}}
