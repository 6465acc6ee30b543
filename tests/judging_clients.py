"""Annotators: raw keep-alive HTTP over asyncio, so that the client costs next to nothing."""

import asyncio
import re
import time
from dataclasses import dataclass, field

ITEM = re.compile(rb'name="item" value="(\d+)"')
TOKEN = re.compile(rb'name="token" value="([^"]+)"')
LENGTH = re.compile(rb"(?i)content-length: *(\d+)")
CSRF = "c" * 32


@dataclass
class Annotator:
    """One signed-in annotator on one connection. `judged` are the items that the site said were settled."""

    port: int
    collection: str
    session: str
    scheme: str = "https"
    repeat: int = 1
    """How often each submit is sent: a nervous finger must count once."""
    judged: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    async def work(self, until: float, most: int = 1_000_000) -> None:
        """Claim, then submit and get the next until the time, the number or the queue ends."""
        page = await self.begin()
        while time.perf_counter() < until and len(self.judged) < most and TOKEN.search(page):
            page = await self.submit(page, time.perf_counter())
        self.writer.close()

    async def work_at(self, times: list[float]) -> None:
        """Submit at these times, or as soon after as the answer before is there; the wait for it counts too."""
        page = await self.begin()
        for planned in times:
            await asyncio.sleep(max(0.0, planned - time.perf_counter()))
            if not TOKEN.search(page):
                break
            page = await self.submit(page, planned)
        self.writer.close()

    async def submit(self, page: bytes, started: float) -> bytes:
        """Judge the pair of a page; the next page."""
        item, token = ITEM.search(page)[1], TOKEN.search(page)[1]
        for _ in range(self.repeat):
            page = await self.post("submit/", b"item=%b&token=%b&grade=%d" % (item, token, int(item) % 2))
        self.seconds.append(time.perf_counter() - started)
        self.judged.append(int(item))
        return page

    async def begin(self) -> bytes:
        """Connect and claim; the page."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        return await self.post("next/", b"")

    async def post(self, path: str, body: bytes) -> bytes:
        """One request; the body of its answer."""
        self.writer.write(self.head("POST", f"/c/{self.collection}/judge/{path}", len(body)) + body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        answer = await self.reader.readexactly(int(length[1])) if length else b""
        if not head.startswith(b"HTTP/1.1 200"):
            self.problems.append(head.split(b"\r\n", 1)[0].decode())
        return answer

    def head(self, method: str, path: str, length: int) -> bytes:
        """The request's head, as a browser behind the TLS proxy would send it."""
        return (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nX-Forwarded-Proto: {self.scheme}\r\n"
            f"Origin: {self.scheme}://127.0.0.1:{self.port}\r\nCookie: sessionid={self.session}; csrftoken={CSRF}\r\n"
            f"X-CSRFToken: {CSRF}\r\nHX-Request: true\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            f"Content-Length: {length}\r\n\r\n"
        ).encode()


def run(annotators: list[Annotator], *, seconds: float, most: int = 1_000_000) -> float:
    """All of them at once; the seconds it took."""

    async def everybody() -> None:
        until = time.perf_counter() + seconds
        await asyncio.gather(*(annotator.work(until, most) for annotator in annotators))

    started = time.perf_counter()
    asyncio.run(everybody())
    return time.perf_counter() - started


def run_at(annotators: list[Annotator], rate: float, seconds: float) -> None:
    """Offer so many judgments a second between them, evenly and in turns, however fast they are answered."""
    begins = time.perf_counter() + 1.0

    async def everybody() -> None:
        waits = []
        for place, annotator in enumerate(annotators):
            turns = range(place, int(rate * seconds), len(annotators))
            waits.append(annotator.work_at([begins + turn / rate for turn in turns]))
        await asyncio.gather(*waits)

    asyncio.run(everybody())
