"""Queries without a model: the rarest words, so that a demo needs no key. Real, deterministic, weak. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from judges.offline.judges import Lexicon, read_sentences
from judges.offline.synthesis import find_rare_terms

Told = Mapping[str, Any]
KEYWORDS = 6
SENTENCES = 3  # Of a document that are read.


def _choose_keywords(told: Told, lexicon: Lexicon) -> dict[str, object]:
    return {"keywords": find_rare_terms(told["query"], lexicon, KEYWORDS)}


def _ask_for_document(told: Told, lexicon: Lexicon) -> dict[str, object]:
    document = told["document"]
    begin = " ".join(document[one.start : one.end] for one in read_sentences(document)[:SENTENCES])
    return {"query": f"What is known about {', '.join(find_rare_terms(begin, lexicon))}?"}


ROLES: dict[str, Callable[[Told, Lexicon], dict[str, object]]] = {
    "keywords": _choose_keywords,
    "ask": _ask_for_document,
}
