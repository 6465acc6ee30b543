"""Results of a web search as documents and pairs of a collection.

Pages are untrusted: they become plain text like imported documents, and no link in them is followed.
"""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from corpus.aspects.documents import LONGEST
from corpus.url_fetch import texts
from corpus.url_fetch.addresses import LONGEST_URL, check_url
from corpus.url_fetch.pages import fetch_page
from corpus.url_fetch.problems import NoPage
from corpus.url_fetch.robots import RobotRules
from judges.prompts.answers.retrieval import FoundPage


@dataclass(frozen=True, slots=True)
class WebDocument:
    """A page as a document: its cleaned text, its address, when it was fetched, and the hash of its bytes."""

    title: str
    text: str
    url: str
    fetched_at: datetime
    sha256: str
    published: str = ""

    @property
    def id(self) -> str:
        """The document's id: pages with the same title and text are one document."""
        return "web-" + sha256(f"{self.title}\n{self.text}".encode()).hexdigest()[:16]


class PageReader:
    """Makes documents of results, from the text of the search service or (`fetch`) from the page's own site."""

    def __init__(self, *, fetch: bool) -> None:
        self.fetch, self.rules = fetch, RobotRules()

    def read_page(self, page: FoundPage, answered_at: datetime) -> WebDocument:
        """Make a document of a result. Raises NoPage where its address is refused or it has no text."""
        check_url(page.url)
        if not self.fetch:
            return _build_document(page, answered_at)
        self.rules.check(page.url)
        now = datetime.now().astimezone()
        fetched = fetch_page(page.url)
        title, text = texts.extract_text(fetched)
        title = clean_line(title, 500) or clean_line(page.title, 500)
        # A very long page is shortened, not refused: its beginning can be judged.
        return WebDocument(title, text[:LONGEST], fetched.url, now, fetched.sha256, page.published)


def _build_document(page: FoundPage, answered_at: datetime) -> WebDocument:
    text = texts.clean_text(page.text)[:LONGEST]
    if not text:
        raise NoPage("no-text")
    digest = sha256(page.text.encode("utf-8", "replace")).hexdigest()
    return WebDocument(clean_line(page.title, 500), text, page.url, answered_at, digest, page.published)


def clean_line(text: str, longest: int = LONGEST_URL) -> str:
    """Return an untrusted title or address as one line that can be stored and shown."""
    return " ".join(texts.clean_text(text).split())[:longest]
