"""Results of a web search as documents and pairs of a collection.

Pages are untrusted: they become plain text like imported documents, and no link in them is followed.
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
from judges.prompts.answers.retrieval import FoundPage
from judges.records import Judge


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


def import_documents(
    collection: Collection, judge: Judge, by_query: Mapping[str, Sequence[WebDocument]]
) -> dict[str, int]:
    """Add documents that the collection lacks, and pairs without labels; return how many of each.

    `by_query`: documents by the ids of their queries.
    """
    documents = {document.id: document for results in by_query.values() for document in results}
    if not documents:
        return {"documents": 0, "pairs": 0}
    # Ids are hashes of the text, so a page that was found before has the same id.
    rows = Document.objects.filter(collection=collection, is_current=True, external_id__in=documents)
    existing = set(rows.values_list("external_id", flat=True))
    pairs = [{"query_id": query, "doc_id": document.id} for query, results in by_query.items() for document in results]
    pairs = list({(pair["query_id"], pair["doc_id"]): pair for pair in pairs}.values())
    corpus: list[dict[str, Any]] = []
    for document in documents.values():
        # An existing document keeps its metadata, which name the search that found it first.
        if document.id in existing:
            continue
        source = {"kind": "web", "url": document.url, "fetched_at": document.fetched_at.isoformat(timespec="seconds")}
        source |= {"sha256": document.sha256, "search": judge.name, "service": judge.provider}
        source |= {"published": document.published} if document.published else {}
        row = {"_id": document.id, "title": document.title, "text": document.text, "metadata": {"source": source}}
        corpus.append(row)
    counts = import_rows(collection, corpus=corpus, pairs=pairs)
    return {name: counts[name] for name in ("documents", "pairs")}
