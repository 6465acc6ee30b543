"""Probabilities of an answer, from the log-probabilities of its tokens (ERank 3.2)."""

import json
import math
from collections.abc import Sequence

from judges.records import Token

AROUND = ' \t\r\n"{}:,'  # Characters of the answer's JSON that a token may contain beside the word itself.


def of_answer(
    text: str, tokens: Sequence[Token], verdict: int, score: int | None, start: int = 0
) -> dict[str, float] | None:
    """Return {score: P(score)} of a graded answer, {"yes": p, "no": p} of a binary one; None if the tokens do not tell.

    P(s) is the product over the tokens that contain the score's digits, given everything generated before them. It is
    not renormalised: "10" may be two tokens, the first of which is "1" (ERank 3.2). The probability of the opposite
    binary answer is the sum over the listed alternatives that spell it. If none does, it is at most as probable as the
    least of them, and at most what all of them leave: that bound is taken. (Servers that bind an answer to a schema
    may list what the model would have said without it.) `start`: position of the answer's object, after any reasoning.
    """
    answer_value = str(score) if score is not None else "yes" if verdict else "no"
    span = _value_span(text, start, "score" if score is not None else "response", answer_value)
    if span is None or not tokens or "".join(token.text for token in tokens) != text:
        return None
    # The tokens that contain any of the value's characters.
    first, last = span
    value_tokens, position = [], 0
    for token in tokens:
        if position < last and position + len(token.text) > first:
            value_tokens.append(token)
        position += len(token.text)
    if not value_tokens:
        return None
    probabilities = {answer_value: math.exp(sum(token.logprob for token in value_tokens))}
    if score is None:
        other = "no" if verdict else "yes"
        alternatives = {value_tokens[0].text: value_tokens[0].logprob} | value_tokens[0].others
        other_probabilities = [math.exp(p) for word, p in alternatives.items() if word.strip(AROUND).lower() == other]
        remainder = max(0.0, 1.0 - sum(map(math.exp, alternatives.values())))
        least = min(map(math.exp, value_tokens[0].others.values()), default=1.0)
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
