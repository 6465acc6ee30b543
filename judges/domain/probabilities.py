"""Probabilities of an answer, from its tokens' log-probabilities (ERank 3.2)."""

import json
import math
from collections.abc import Sequence

from judges.records import Token

AROUND = ' \t\r\n"{}:,'  # What of the answer's JSON a token may hold beside the word itself.


def of_answer(
    text: str, tokens: Sequence[Token], verdict: int, score: int | None, start: int = 0
) -> dict[str, float] | None:
    """Return {score: P(score)} of a graded answer, {"yes": p, "no": p} of a binary one; None where tokens do not tell.

    P(s) is the product over the tokens that hold the score's digits, after everything that was
    generated before them, and it is not renormalised: "10" may be two tokens, and "1" is its
    beginning (ERank 3.2). Of the binary answer that was not given, what stands among the likeliest
    alternatives is known; where it is not among them its probability is at most what all that are
    listed leave, and that bound is taken. `start`: where the answer's object begins, after what was
    thought.
    """
    said = str(score) if score is not None else "yes" if verdict else "no"
    span = _value_span(text, start, "score" if score is not None else "response", said)
    if span is None or not tokens:
        return None
    held = _tokens_between(text, tokens, *span)
    if not held:
        return None
    found = {said: math.exp(sum(token.logprob for token in held))}
    if score is None:
        other = "no" if verdict else "yes"
        listed = {held[0].text: held[0].logprob} | held[0].others
        shares = [math.exp(p) for word, p in listed.items() if word.strip(AROUND).lower() == other]
        found[other] = sum(shares) if shares else max(0.0, 1.0 - sum(map(math.exp, listed.values())))
    return {key: min(value, 1.0) for key, value in found.items()}


def _value_span(text: str, start: int, key: str, said: str) -> tuple[int, int] | None:
    """Return where the value of `key` stands in the JSON: characters without quotes."""
    decoder = json.JSONDecoder()
    at = text.find("{", start) + 1
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
            found = text[at:end].lower().find(said)  # "Yes" is a verdict too where the judge's version says so
            return (at + found, at + found + len(said)) if found >= 0 and str(value).lower() == said else None
        at = end
    return None


def _tokens_between(text: str, tokens: Sequence[Token], start: int, end: int) -> list[Token]:
    """Return tokens that hold any of the characters; [] where they do not fit."""
    if "".join(token.text for token in tokens) != text:
        return []
    held, at = [], 0
    for token in tokens:
        if at < end and at + len(token.text) > start:
            held.append(token)
        at += len(token.text)
    return held
