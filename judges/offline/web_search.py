"""A web search without a network, so that a demo needs no key: the bundled passages are its web. Pure."""

from functools import cache
from math import sqrt
from pydoc_data.topics import topics

from corpus.bundled.passages import BundledPassage, cut_passages
from judges.offline.judges import Lexicon, read_sentences
from judges.offline.synthesis import find_rare_terms

SEARCH = "web-search"
TERMS = 8  # Of the query that are searched for, the rarest first.
SITE = "https://offline-web-search.example/"  # A domain that nobody can own: it says where these pages are from.


def find_pages(query: str, lexicon: Lexicon, most: int) -> dict[str, object]:
    """The passages that hold most of the query's rare terms, longer ones holding them less."""
    terms = [term.lower() for term in find_rare_terms(query, lexicon, TERMS)]
    ranked = sorted(((_score(one.text, terms), one.id) for one in _pages().values()), key=lambda two: (-two[0], two[1]))
    found = [_pages()[name] for score, name in ranked[:most] if score > 0]
    return {"results": [_entry(one) for one in found]}


def _score(text: str, terms: list[str]) -> float:
    words = text.lower()
    return sum(term in words for term in terms) / sqrt(1 + len(read_sentences(text)))


def _entry(page: BundledPassage) -> dict[str, str]:
    return {"url": f"{SITE}{page.id}", "title": page.title, "text": page.text, "published": ""}


@cache
def _pages() -> dict[str, BundledPassage]:
    return {one.id: one for one in cut_passages(topics)}
