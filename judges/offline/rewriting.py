"""Rewriting without a model: sentences of the documents that the query's words find best, and the words they share.

Real, deterministic and weak, as the other offline judges: pseudo-relevance feedback, so that runs
by rewriting work without a key. Pure.
"""

from collections import Counter
from collections.abc import Sequence

from corpus.search.text import tokenize_text
from judges.offline.judges import STOP_WORDS, Lexicon, read_sentences, sentence_stems, stem

REWRITER = "rewriter"
FEEDBACK = 5  # Documents that are read.
WINDOW = 3  # Sentences of a passage.
TERMS = 12  # Words that a reasoning names.


def best_passage(query: str, documents: Sequence[str], lexicon: Lexicon, sample: int = 0) -> str:
    """The part of the `sample`-th best document that holds most of the query's weight; the query where none is left."""
    if not documents:
        return query
    document = documents[sample % len(documents)]
    asked = {stem(word): lexicon.weight(word) for word in tokenize_text(query)}
    found = read_sentences(document)
    places = range(max(1, len(found) - WINDOW + 1)) if found else range(0)

    def weight(place: int) -> float:
        return sum(asked[one] for one in sentence_stems(found[place : place + WINDOW]) & asked.keys())

    best = max(places, key=lambda place: (weight(place), -place), default=None)
    if best is None:
        return query
    return document[found[best].start : found[min(best + WINDOW, len(found)) - 1].end]


def expand_query(query: str, documents: Sequence[str], lexicon: Lexicon) -> str:
    """Return the query, and the most telling words that the best documents share beyond it."""
    held: Counter[str] = Counter()
    written: dict[str, str] = {}
    for document in documents:
        for word in dict.fromkeys(tokenize_text(document)):
            if word not in STOP_WORDS and not word.isdigit():
                held[stem(word)] += 1
                written.setdefault(stem(word), word)
    for word in tokenize_text(query):
        held.pop(stem(word), None)
    best = sorted(held, key=lambda one: (-held[one] * lexicon.weight(written[one]), one))[:TERMS]
    terms = ", ".join(written[one] for one in best)
    return f"{query} What helps speaks of {terms}." if terms else query
