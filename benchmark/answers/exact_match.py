"""Exact match of short answers, as in question answering (SQuAD's script). Pure."""

import re
import string
import unicodedata
from collections.abc import Iterable

_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalise_answer(text: str) -> str:
    """Lower the text's case, and remove punctuation, English articles and extra white space."""
    characters = (character for character in text.lower() if character not in string.punctuation)
    unpunctuated = "".join(character for character in characters if not unicodedata.category(character).startswith("P"))
    return " ".join(_ARTICLES.sub(" ", unpunctuated).split())


def is_exact_match(answer: str, references: Iterable[str]) -> bool:
    """Return whether the answer equals a reference apart from case, punctuation and articles."""
    normalised = normalise_answer(answer)
    return bool(normalised) and any(normalised == normalise_answer(reference) for reference in references)
