"""Fetching one page over http or https, with every redirect checked, within limits of time and size."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import Message
from hashlib import sha256
from queue import SimpleQueue

from django.conf import settings

from corpus.url_fetch.client import FetchLimits, WebClient
from corpus.url_fetch.problems import NoPage

TYPES = ("text/html", "application/xhtml+xml", "text/plain")
HEADERS = {
    "User-Agent": f"Quorum/{settings.VERSION} (a person asked for this page)",
    "Accept": "text/html,application/xhtml+xml,text/plain;q=0.9",
}
Progress = Callable[[int], None]


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


def fetch_page(url: str, limits: FetchLimits | None = None, progress: Progress = lambda received: None) -> FetchedPage:
    """Fetch the page of an address, following redirects. Raises NoPage with the reason where that fails.

    progress: called with the number of bytes received, on the caller's thread, which may write to the database.
    """
    counts: SimpleQueue[int | None] = SimpleQueue()
    with ThreadPoolExecutor(1) as thread:
        # A thread of its own, since the caller's may have an event loop already.
        page = thread.submit(asyncio.run, _fetch(url, limits, counts.put))
        page.add_done_callback(lambda _: counts.put(None))
        while (received := counts.get()) is not None:
            progress(received)
        try:
            return page.result()
        except NoPage as problem:
            # Again, because languages are set by thread.
            raise NoPage(problem.code, **problem.values) from None


async def _fetch(url: str, limits: FetchLimits | None, progress: Progress) -> FetchedPage:
    async with WebClient(limits=limits) as client, client.stream("GET", url, headers=HEADERS) as response:
        if response.status != 200:
            raise NoPage("status", status=response.status)
        declared = Message()
        declared["Content-Type"] = response.headers.get("content-type", "text/plain")
        media = declared.get_content_type()
        if media not in TYPES:
            raise NoPage("media", media=media)
        body = bytearray()
        async for piece in response.pieces():
            body += piece
            progress(len(body))
        return FetchedPage(response.url, media, declared.get_content_charset() or "", bytes(body))
