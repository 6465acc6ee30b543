"""Pages that a web search found, as documents and pairs of the collection.

Pages are strangers' texts: they become documents like imported ones, without markup, and nothing in them is followed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from corpus.aspects.documents import LONGEST
from corpus.importing.made_rows import import_rows
from corpus.models import Collection, Document
from corpus.url_fetch import texts
from corpus.url_fetch.pages import LONGEST_URL, check_url, fetch_page
from corpus.url_fetch.problems import NoPage
from corpus.url_fetch.robots import RobotRules
from judges.records import Judge
from judges.retrieval.answers import FoundPage


@dataclass(frozen=True, slots=True)
class WebDocument:
    """A page as a document: its cleaned text, and where, when and as what bytes it came."""

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
    """Makes documents of results: of the text that the service gives, or (`fetch`) of the page from its own site."""

    def __init__(self, *, fetch: bool) -> None:
        self.fetch, self.rules = fetch, RobotRules()

    def read_page(self, page: FoundPage, answered_at: datetime) -> WebDocument:
        """Make a document of a result. Raises NoPage where its address or its text will not do."""
        check_url(page.url)
        if not self.fetch:
            return _build_document(page, answered_at)
        self.rules.check(page.url)
        now = datetime.now().astimezone()
        got = fetch_page(page.url)
        title, text = texts.extract_text(got)
        title = clean_line(title, 500) or clean_line(page.title, 500)
        # Cut and not refused: the beginning of a very long page can be judged.
        return WebDocument(title, text[:LONGEST], got.url, now, got.sha256, page.published)


def _build_document(page: FoundPage, answered_at: datetime) -> WebDocument:
    text = texts.clean_text(page.text)[:LONGEST]
    if not text:
        raise NoPage("no-text")
    digest = sha256(page.text.encode("utf-8", "replace")).hexdigest()
    return WebDocument(clean_line(page.title, 500), text, page.url, answered_at, digest, page.published)


def clean_line(text: str, longest: int = LONGEST_URL) -> str:
    """A stranger's title or address as one line that can be stored and shown."""
    return " ".join(texts.clean_text(text).split())[:longest]


def import_documents(
    collection: Collection, judge: Judge, found: Mapping[str, Sequence[WebDocument]]
) -> dict[str, int]:
    """Add the documents that the collection lacks, and the pairs; return how many of each. No label comes with them.

    `found`: documents by the ids of their queries.
    """
    documents = {one.id: one for several in found.values() for one in several}
    if not documents:
        return {"documents": 0, "pairs": 0}
    # Ids come from the text, so a page that was found before is known by its id.
    rows = Document.objects.filter(collection=collection, is_current=True, external_id__in=documents)
    known = set(rows.values_list("external_id", flat=True))
    pairs = [{"query_id": query, "doc_id": one.id} for query, several in found.items() for one in several]
    pairs = list({(pair["query_id"], pair["doc_id"]): pair for pair in pairs}.values())
    # A document that is there already keeps its metadata: they name the search that found it first.
    fresh = [_corpus_line(one, judge) for name, one in documents.items() if name not in known]
    new = import_rows(collection, corpus=fresh, pairs=pairs)
    return {name: new[name] for name in ("documents", "pairs")}


def _corpus_line(one: WebDocument, judge: Judge) -> dict[str, Any]:
    source = {"kind": "web", "url": one.url, "fetched_at": one.fetched_at.isoformat(timespec="seconds")}
    source |= {"sha256": one.sha256, "search": judge.name, "service": judge.provider}
    source |= {"published": one.published} if one.published else {}
    return {"_id": one.id, "title": one.title, "text": one.text, "metadata": {"source": source}}
