"""How sure a model was of its answer, from the log-probabilities of the answer's tokens (ERank 3.2). Pure."""

import json
import math
from collections.abc import Sequence

from judges.records import Token

LETTERS = ' \t\r\n"'


def of_answer(text: str, tokens: Sequence[Token], verdict: int, score: int | None) -> dict[str, float] | None:
    """{the score: P(s)} of a graded answer, {"yes": p, "no": p} of a binary one; None where tokens do not tell.

    P(s) is the product over the tokens that hold the score's digits, after everything that was generated before them,
    and it is not renormalised: "10" may be two tokens, and "1" is its beginning (ERank 3.2). Of the answer that was
    not given only what stands among the likeliest alternatives is known; else it is left out.
    """
    said = str(score) if score is not None else "yes" if verdict else "no"
    span = _span(text, "score" if score is not None else "response", said)
    if span is None or not tokens:
        return None
    held = _tokens(text, tokens, *span)
    if not held:
        return None
    found = {said: math.exp(sum(token.logprob for token in held))}
    if score is None:
        other = "no" if verdict else "yes"
        shares = [math.exp(p) for word, p in held[0].others.items() if word.strip(LETTERS).lower() == other]
        if shares:
            found[other] = sum(shares)
    return {key: min(value, 1.0) for key, value in found.items()}


def _span(text: str, key: str, said: str) -> tuple[int, int] | None:
    """Where in the JSON object the value of `key` stands: its characters without quotation marks."""
    decoder = json.JSONDecoder()
    at = text.find("{") + 1
    while 0 < at < len(text):
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at >= len(text) or text[at] != '"':
            return None
        try:
            name, at = decoder.raw_decode(text, at)
            at = text.index(":", at) + 1
            while text[at] in " \t\r\n":
                at += 1
            value, end = decoder.raw_decode(text, at)
        except (ValueError, IndexError):
            return None
        if name == key:
            start = text.find(said, at, end)
            return (start, start + len(said)) if start >= 0 and str(value) == said else None
        at = end
    return None


def _tokens(text: str, tokens: Sequence[Token], start: int, end: int) -> list[Token]:
    """The tokens that hold any of the characters; [] where the tokens are not those of the text."""
    if "".join(token.text for token in tokens) != text:
        return []
    held, at = [], 0
    for token in tokens:
        if at < end and at + len(token.text) > start:
            held.append(token)
        at += len(token.text)
    return held
