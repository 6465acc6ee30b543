"""Query rewriting without a model, by pseudo-relevance feedback: sentences and words of the best documents. Pure.

It is deterministic and weak like the other offline judges, so that runs with rewriting work without a key.
"""

from collections import Counter
from collections.abc import Sequence

from corpus.search.text import tokenize_text
from judges.offline.judges import STOP_WORDS, Lexicon, read_sentences, sentence_stems, stem

REWRITER = "rewriter"
FEEDBACK = 5  # Documents that are read.
WINDOW = 3  # Sentences of a passage.
TERMS = 12  # Words that the reasoning adds to the query.


def best_passage(query: str, documents: Sequence[str], lexicon: Lexicon, sample: int = 0) -> str:
    """Return the part of the `sample`-th best document with most of the query's weight; the query if there is none."""
    if not documents:
        return query
    document = documents[sample % len(documents)]
    query_weights = {stem(word): lexicon.weight(word) for word in tokenize_text(query)}
    sentences = read_sentences(document)
    starts = range(max(1, len(sentences) - WINDOW + 1)) if sentences else range(0)

    def weight(start: int) -> float:
        return sum(
            query_weights[term] for term in sentence_stems(sentences[start : start + WINDOW]) & query_weights.keys()
        )

    best = max(starts, key=lambda start: (weight(start), -start), default=None)
    if best is None:
        return query
    return document[sentences[best].start : sentences[min(best + WINDOW, len(sentences)) - 1].end]


def expand_query(query: str, documents: Sequence[str], lexicon: Lexicon) -> str:
    """Return the query with the words of highest weight that the best documents share beyond it."""
    counts: Counter[str] = Counter()
    words_by_stem: dict[str, str] = {}
    for document in documents:
        for word in dict.fromkeys(tokenize_text(document)):
            if word not in STOP_WORDS and not word.isdigit():
                counts[stem(word)] += 1
                words_by_stem.setdefault(stem(word), word)
    for word in tokenize_text(query):
        counts.pop(stem(word), None)
    best = sorted(counts, key=lambda root: (-counts[root] * lexicon.weight(words_by_stem[root]), root))[:TERMS]
    terms = ", ".join(words_by_stem[root] for root in best)
    return f"{query} What helps speaks of {terms}." if terms else query
