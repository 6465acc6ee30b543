"""What is searched for, made of a query and the texts that a judge wrote for it. Pure."""

from collections.abc import Sequence

from corpus.search.text import tokenize_text

REPEATS = 5
"""Times that query2doc repeats the query before the passage (Wang et al. 2023, section 2: n = 5 for BM25)."""
BETA = 4
"""MuGI's weight of the references (Zhang et al. 2024, section 3.1)."""
SAMPLES = {"hyde": 1, "query2doc": 1, "mugi": 5}
"""Texts that a method asks for, unless the recipe says otherwise."""


def combine_texts(method: str, query: str, texts: Sequence[str]) -> str:
    """The text that takes the query's place, by the method's own rule."""
    if method == "query2doc":
        return "\n".join([query] * REPEATS + list(texts))
    if method == "mugi":
        return "\n".join([query] * count_repeats(query, texts) + list(texts))
    return "\n".join(texts)  # HyDE: the query itself is not searched for


def count_repeats(query: str, texts: Sequence[str]) -> int:
    """How often MuGI puts the query first: floor(words of all references / (words of the query x beta)), at least 1."""
    size = len(tokenize_text(query))
    return max(1, sum(len(tokenize_text(text)) for text in texts) // (size * BETA)) if size else 1
