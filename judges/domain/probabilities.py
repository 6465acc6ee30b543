"""Probabilities of an answer, from the log-probabilities of its tokens (ERank 3.2)."""

import json
import math
from collections.abc import Sequence

from judges.records import Token

JSON_CHARACTERS = ' \t\r\n"{}:,'  # Characters around a word that may be in the same token.


def answer_probabilities(
    text: str, tokens: Sequence[Token], verdict: int, score: int | None, start: int = 0
) -> dict[str, float] | None:
    """Return the probability of the answer's score, {score: p}, or of both binary answers, {"yes": p, "no": p}.

    `text` is the model's output, in which the JSON object of the answer begins at `start`, after any reasoning;
    `tokens` are its tokens. `score` is None for a binary answer, which `verdict` gives as 1 or 0. Returns None if the
    value is not in the text, or the tokens do not make up the text.

    The probability of a score is not renormalised over all scores: "10" may be two tokens, the first of which is "1"
    (ERank 3.2).
    """
    answer_value = str(score) if score is not None else "yes" if verdict else "no"
    span = _value_span(text, start, "score" if score is not None else "response", answer_value)
    if span is None or not tokens or "".join(token.text for token in tokens) != text:
        return None
    # The tokens that contain any of the value's characters. Each probability is given all tokens before it, so that of
    # the value is their product.
    value_start, value_end = span
    value_tokens, position = [], 0
    for token in tokens:
        if position < value_end and position + len(token.text) > value_start:
            value_tokens.append(token)
        position += len(token.text)
    if not value_tokens:
        return None
    probabilities = {answer_value: math.exp(sum(token.logprob for token in value_tokens))}
    if score is None:
        # The opposite answer: the sum over the listed alternatives of the first token that spell it. A server that
        # binds an answer to a schema may list what the model would have said without it.
        other, first = "no" if verdict else "yes", value_tokens[0]
        alternatives = {first.text: first.logprob} | first.others
        other_probabilities = [
            math.exp(logprob) for word, logprob in alternatives.items() if word.strip(JSON_CHARACTERS).lower() == other
        ]
        # If none spells it, it is at most as probable as the least of them, and at most what they leave: the bound.
        remainder = max(0.0, 1.0 - sum(map(math.exp, alternatives.values())))
        least = min(map(math.exp, first.others.values()), default=1.0)
        probabilities[other] = sum(other_probabilities) if other_probabilities else min(remainder, least)
    return {key: min(value, 1.0) for key, value in probabilities.items()}


def _value_span(text: str, start: int, key: str, answer_value: str) -> tuple[int, int] | None:
    """Return the start and end of the value of `key` in the JSON text, without its quotation marks."""
    decoder = json.JSONDecoder()
    position = text.find("{", start) + 1
    while 0 < position < len(text):
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        if position >= len(text) or text[position] != '"':
            return None
        try:
            name, position = decoder.raw_decode(text, position)
            position = text.index(":", position) + 1
            while text[position] in " \t\r\n":
                position += 1
            parsed_value, end = decoder.raw_decode(text, position)
        except (ValueError, IndexError):
            return None
        if name == key:
            # The case is ignored: some judges' versions accept "Yes" as a verdict.
            offset = text[position:end].lower().find(answer_value)
            if offset < 0 or str(parsed_value).lower() != answer_value:
                return None
            return position + offset, position + offset + len(answer_value)
        position = end
    return None
