"""A web search without a network, so that a demo needs no key: it searches the bundled passages. Pure."""

from functools import cache
from math import sqrt
from pydoc_data.topics import topics

from corpus.bundled.passages import BundledPassage, cut_passages
from judges.offline.judges import Lexicon, read_sentences
from judges.offline.synthesis import find_rare_terms

SEARCH = "web-search"
TERMS = 8  # Terms of the query in a search, the rarest first.
SITE = "https://offline-web-search.example/"  # A reserved domain, which shows the origin of these pages.


def find_pages(query: str, lexicon: Lexicon, limit: int) -> dict[str, object]:
    """Return the passages with most of the query's rare terms, where longer passages score lower."""
    terms = [term.lower() for term in find_rare_terms(query, lexicon, TERMS)]
    ranked = sorted(
        ((_score(page.text, terms), page.id) for page in _pages().values()),
        key=lambda ranked_page: (-ranked_page[0], ranked_page[1]),
    )
    best_pages = [_pages()[name] for score, name in ranked[:limit] if score > 0]
    return {"results": [_entry(page) for page in best_pages]}


def _score(text: str, terms: list[str]) -> float:
    words = text.lower()
    return sum(term in words for term in terms) / sqrt(1 + len(read_sentences(text)))


def _entry(page: BundledPassage) -> dict[str, str]:
    return {"url": f"{SITE}{page.id}", "title": page.title, "text": page.text, "published": ""}


@cache
def _pages() -> dict[str, BundledPassage]:
    return {passage.id: passage for passage in cut_passages(topics)}
