"""Parsing of answers: each gives a verdict or an error, never a default label.

The schema is taken to the letter: one JSON object with the requested keys and no others, no key twice, strings where
strings were asked for, and nothing around it (no Markdown, no prose). White space that JSON allows is ignored.
`response` must be exactly "yes" or "no". A turn needs all three keys; a vote may leave out the reason. Over-long
reasons are kept, blank quotations are dropped. NUL and lone surrogates cannot be stored, so they are refused.

A judge's version may relax three of these rules, for models that do not enforce a schema (ParsingRules).
"""

import json
import re
import zlib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, NoReturn

from judges.domain.quotes import locate_quote
from judges.records import Judge, Turn

VERDICTS = {"yes": 1, "no": 0}
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
WHITESPACE = " \t\r\n"  # What JSON takes for white space.
_FENCE = re.compile(r"```(?:json)?[ \t]*\r?\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
_REASONING = re.compile(r"<think>(.*)</think>(.*)", re.DOTALL)


class Unusable(ValueError):
    """An answer without a verdict. Its text names the problem in words that fit into a repair prompt."""

    outcome = "unparsed"


class Unparsed(Unusable):
    """The answer does not follow the schema."""


class OutOfRange(Unusable):
    """The answer follows the schema, but its response is neither yes nor no."""

    outcome = "out_of_range"


@dataclass(frozen=True, slots=True)
class NoVerdict:
    """A turn or vote that brought no verdict, even after retries and a repair. ValueError: not such an outcome."""

    # refused, unparsed, truncated, prompt_cut, out_of_range or error (transport, 429, 5xx, timeout, rejected).
    outcome: str

    def __post_init__(self) -> None:
        if self.outcome not in ("refused", "unparsed", "truncated", "prompt_cut", "out_of_range", "error"):
            raise ValueError(f"{self.outcome!r} is not the outcome of a call without a verdict.")


@dataclass(frozen=True, slots=True)
class ParsingRules:
    """Rules for parsing a judge's answers: to the letter, unless its version allows more."""

    unwrap: str = "none"  # The wrapping that is removed first: none, fence, think or both.
    ignore_case: bool = False  # Capital letters do not matter in "yes" and "no".
    ignore_extra_keys: bool = False  # Keys that were not asked for are ignored instead of refused.

    @classmethod
    def of(cls, judge: Judge) -> "ParsingRules":
        """Return the rules of a judge's version."""
        return cls(judge.unwrap, judge.ignore_case, judge.extra_keys == "ignore")


STRICT = ParsingRules()


def parse_answer(role: str, text: str, document: str, judge: Judge) -> Turn:
    """Return a debate's turn, or a vote on the judge's scale. Raises Unparsed, OutOfRange."""
    rules = ParsingRules.of(judge)
    if role in ("for", "against", "check"):
        return parse_turn(text, document, rules)
    if role == "adjudicate" or judge.grades == 1:
        return parse_vote(text, rules)
    return parse_graded(text, judge.grades, judge.relevant_from, rules)


def parse_turn(text: str, document: str, rules: ParsingRules = STRICT) -> Turn:
    """Parse a debate turn: reference, reason, response.

    Quotes are looked up in `document`. Raises Unparsed, OutOfRange.
    """
    fields = fields_of(text, rules, required={"reference", "reason", "response"})
    sentences = fields["reference"]
    if not isinstance(sentences, list):
        raise Unparsed('"reference" is not a list of strings')
    quotes = [check_string(sentence, "reference") for sentence in sentences]
    reason = check_string(fields["reason"], "reason")
    return Turn(
        _read_verdict(fields, rules), reason, tuple(locate_quote(quote, document) for quote in quotes if quote.strip())
    )


def parse_vote(text: str, rules: ParsingRules = STRICT) -> Turn:
    """Parse a vote: response, and a reason if it has one. Raises Unparsed, OutOfRange."""
    fields = fields_of(text, rules, required={"response"}, optional={"reason"})
    reason = check_string(fields.get("reason", ""), "reason")
    return Turn(_read_verdict(fields, rules), reason)


def parse_graded(text: str, grades: int, relevant_from: int, rules: ParsingRules = STRICT) -> Turn:
    """Parse a vote from 0 to `grades`; its verdict is 1 from `relevant_from` on. Raises Unparsed, OutOfRange."""
    fields = fields_of(text, rules, required={"score"}, optional={"reason"})
    reason, score = check_string(fields.get("reason", ""), "reason"), fields["score"]
    if isinstance(score, bool) or not isinstance(score, int):
        raise Unparsed('"score" is not a whole number')
    if not 0 <= score <= grades:
        raise OutOfRange(f'"score" is not from 0 to {grades}')
    return Turn(int(score >= relevant_from), reason, score=score)


def _read_verdict(fields: Mapping[str, Any], rules: ParsingRules) -> int:
    response = check_string(fields["response"], "response")
    if rules.ignore_case:
        response = response.lower()
    if response not in VERDICTS:
        raise OutOfRange('"response" is neither "yes" nor "no"')
    return VERDICTS[response]


def check_string(value: object, name: str) -> str:
    """Return the field `name` if it is text that can be stored. Raises Unparsed."""
    if not isinstance(value, str):
        lists = name in ("reference", "entities")
        raise Unparsed(f'"{name}" is not made of strings' if lists else f'"{name}" is not a string')
    if _UNSTORABLE.search(value):
        raise Unparsed(f'"{name}" holds characters that are not text')
    return value


def fields_of(
    text: str, rules: ParsingRules = STRICT, *, required: Set[str], optional: Set[str] = frozenset()
) -> dict[str, Any]:
    """Return the fields of the answer's JSON object, which has only these keys. Raises Unparsed."""
    value = read_object(text, rules)
    if missing := sorted(required - value.keys()):
        raise Unparsed(f'it lacks "{missing[0]}"')
    if value.keys() - required - optional and not rules.ignore_extra_keys:
        raise Unparsed("it has keys that were not asked for")
    return {name: content for name, content in value.items() if name in required or name in optional}


def read_object(text: str, rules: ParsingRules = STRICT) -> dict[str, Any]:
    """Return the one JSON object in the allowed wrapping, with no key twice. Raises Unparsed."""

    def reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) != len(pairs):
            raise Unparsed("it has the same key twice")
        return fields

    def reject_constant(name: str) -> NoReturn:  # NaN and Infinity, which Python reads and JSON does not have.
        raise Unparsed("it was not one JSON object and nothing else")

    text, _ = unwrap_answer(text, rules.unwrap)
    if not text.strip():
        raise Unparsed("it was empty")
    try:
        value = json.loads(text, object_pairs_hook=reject_duplicate_keys, parse_constant=reject_constant)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Unparsed("it was not one JSON object and nothing else") from error
    except ValueError as error:  # The two functions above, and integers with more digits than Python converts.
        raise error if isinstance(error, Unparsed) else Unparsed("it holds a number out of all bounds") from error
    if not isinstance(value, dict):
        raise Unparsed("it was JSON, but not an object")
    return value


def unwrap_answer(text: str, wrapping: str) -> tuple[str, str]:
    """Return the answer without its wrapping, and the reasoning before it. `wrapping`: none, fence, think or both."""
    # The object is not searched for: neither reasoning nor prose beside it is ever read as an answer.
    # Unwrapping twice gives the same as unwrapping once.
    answer, reasoning = text, ""
    if wrapping in ("think", "both"):
        # One block at the beginning. If either tag occurs a second time, even in a quotation, there is
        # no telling where the reasoning ends, so nothing is removed.
        block = _REASONING.fullmatch(text.strip(WHITESPACE))
        if block is not None and text.count("<think>") == text.count("</think>") == 1:
            answer, reasoning = block[2].strip(WHITESPACE), block[1].strip()
    if wrapping in ("fence", "both"):
        # Three backticks, bare or with `json`, each on its own line, around an object and nothing else.
        fenced = _FENCE.fullmatch(answer.strip(WHITESPACE))
        inner_text = fenced[1].strip(WHITESPACE) if fenced else ""
        answer = inner_text if inner_text.startswith("{") else answer
    return answer, reasoning


def repeats_itself(text: str) -> bool:
    """Return whether a cut answer ends in a loop: its last 2,000 characters pack into less than an eighth.

    Answers that do not repeat themselves pack into a quarter or more.
    """
    tail = text[-2000:].encode()
    return len(tail) >= 200 and len(zlib.compress(tail)) * 8 < len(tail)
