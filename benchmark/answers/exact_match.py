"""Exact match of short answers, as question answering counts it (SQuAD's script). Pure."""

import re
import string
import unicodedata
from collections.abc import Iterable

_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalise_answer(text: str) -> str:
    """Lower case, without punctuation, English articles and extra white space."""
    letters = (letter for letter in text.lower() if letter not in string.punctuation)
    plain = "".join(letter for letter in letters if not unicodedata.category(letter).startswith("P"))
    return " ".join(_ARTICLES.sub(" ", plain).split())


def is_exact_match(answer: str, references: Iterable[str]) -> bool:
    """Return whether the answer equals a reference, apart from case, punctuation, articles."""
    said = normalise_answer(answer)
    return bool(said) and any(said == normalise_answer(one) for one in references)
