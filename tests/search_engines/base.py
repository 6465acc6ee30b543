"""What all look-alikes share: the books that they search, ranked by the words of a query, and the way they refuse."""

import json
import re
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tests.search_engines.server import Answer, Request, serve

INDEX = "Books"  # Weaviate's collections begin with a capital letter.
KEY = "k3y-that-nobody-may-see"
USER = "librarian"


@dataclass(frozen=True, slots=True)
class Book:
    """A document; `number` counts from 1."""

    number: int
    title: str
    text: str

    @property
    def uuid(self) -> str:
        return f"00000000-0000-4000-8000-{self.number:012d}"

    @property
    def fields(self) -> dict[str, str]:
        return {"title": self.title, "text": self.text}


_TOPICS = (
    "red shoes", "red hats", "green shoes", "rain", "rain boots", "snow", "red snow", "the sea", "ships", "gardens",
    "roses", "bread", "soup", "horses", "trains", "clocks", "maps", "bridges", "bees", "owls", "letters", "lamps",
    "tea", "red shoes and rain",
)  # fmt: skip
# The first is found by no word of the others.
BOOKS = [Book(1, "Of nothing", "No news.")]
for _topic in _TOPICS:
    BOOKS.append(Book(len(BOOKS) + 1, f"Of {_topic}", f"A book that tells “all & more” of {_topic}."))


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def rank(query: str, count: int) -> list[tuple[Book, float]]:
    """Return the books that share words with the query, the most words first, and how many they share."""
    scores = {book.number: float(len(words_of(query) & words_of(book.text))) for book in BOOKS}
    books = sorted((book for book in BOOKS if scores[book.number]), key=lambda book: -scores[book.number])
    return [(book, scores[book.number]) for book in books[:count]]


class Refusal(Exception):
    """A request that is not answered: status and body; a body that is a text is sent as it is."""

    def __init__(self, status: int, body: Any, media: str = "application/json") -> None:
        super().__init__(status, body)
        self.status, self.body, self.media = status, body, media


class LookAlike:
    """A search engine. Subclasses name its documentation, and answer by `search`, which raises Refusal.

    `options`: keys of an [[endpoint]] table beside name, kind and base_url. `mistakes`: keys that the engine refuses,
    and the code of the failure. `most`: the most hits that it returns; None: as many as anybody asks for.
    `optional`: names in the kind's request without which the engine answers the same. `is_short_of_time`: it answers
    with a part of its hits, and says so (only engines that may do that look at it).
    """

    kind: ClassVar[str]
    version: ClassVar[str]
    documentation: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {"index": INDEX, "api_key_env": "ENGINE_KEY"}
    mistakes: ClassVar[tuple[dict[str, Any], str]]
    unknown_index: ClassVar[str] = "status-404"
    missing_key: ClassVar[str] = "status-401"
    wrong_key: ClassVar[str] = "status-401"
    most: ClassVar[int | None] = None
    above_most: ClassVar[str] = "status-400"
    optional: ClassVar[Collection[str]] = ()

    port = 0
    is_short_of_time = False

    @contextmanager
    def running(self) -> Iterator[Self]:
        with serve(self.answer) as self.port:
            yield self

    async def answer(self, request: Request) -> Answer:
        try:
            return Answer(200, json.dumps(self.search(request)))
        except Refusal as refusal:
            body = refusal.body if isinstance(refusal.body, str) else json.dumps(refusal.body)
            return Answer(refusal.status, body, refusal.media)

    def search(self, request: Request) -> Any:
        """Return the document of an answer. Raises Refusal."""
        raise NotImplementedError

    def identity(self, book: Book) -> str:
        """Return the id of a book as hits have it."""
        return f"b{book.number}"


def basic() -> str:
    """The value of a header of HTTP basic authentication."""
    return "Basic " + b64encode(f"{USER}:{KEY}".encode()).decode()


def read_json(request: Request, refusal: Refusal) -> dict[str, Any]:
    """Return the object of a body. Raises the refusal."""
    try:
        document = json.loads(request.body)
    except ValueError:
        raise refusal from None
    if not isinstance(document, dict):
        raise refusal
    return document


def first_unknown(document: Mapping[str, Any], names: str) -> str:
    """Return the first name of an object that is none of the names, which spaces separate; ""."""
    return next((name for name in document if name not in names.split()), "")
