"""Reading of bodies that may hold anything: parts of an answer, and the error that a refusal means."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from judges.errors import BadAnswer, Overloaded, ProviderError, RateLimited, Refused, Rejected, Unreachable
from judges.rates import read_duration
from judges.records import Token, Usage

LARGEST = 2**31 - 1  # What the columns of counts hold.
# Statuses that speak of the account or the model, and not of the question; 412 is an account that Fireworks holds.
REFUSALS = (401, 402, 403, 404, 412)
BUSY = (498,)  # Statuses below 500 that mean a server without room: Groq's flex tier.
# Codes of a 400 that means: the model did not keep to the form this time (Groq). Another try may.
WAIT_IN_WORDS = re.compile(
    r"(?:try again|retry) (?:in ((?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+)|(?:after|in) (\d+) seconds?)", re.I
)
MISSED = {"json_validate_failed", "tool_use_failed"}
# Codes of a 429 that no waiting ends.
NO_QUOTA = {"insufficient_quota", "billing_not_active", "billing_hard_limit_reached"}


def parse_body(raw: str) -> dict[str, Any]:
    """Return the JSON object in a body; {} when it holds no object."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    # Google's endpoint in OpenAI's form wraps its errors in a list.
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    return body if isinstance(body, dict) else {}


def get_path(value: object, *path: str | int) -> Any:
    """Return the value at the end of the path; None where a step of it is missing."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def get_list(value: object, *path: str | int) -> list[Any]:
    """Return the list at the end of the path; [] where there is none."""
    found = get_path(value, *path)
    return found if isinstance(found, list) else []


def storable_text(value: object, limit: int | None = None) -> str:
    """Return text that the database can hold: no lone surrogates, no NUL; "" for anything but text."""
    if not isinstance(value, str):
        return ""
    if not value.isascii():
        value = value.encode("utf-8", "replace").decode()
    return value.replace("\0", "\ufffd")[:limit]


def read_tokens(
    said: str, found: list[Any], name: str, logprob: str, alternatives: list[list[Any]]
) -> tuple[Token, ...]:
    """Return tokens with their log-probabilities; () where one is unreadable, or they are not those of the text."""
    # `name` and `logprob` are where an entry keeps its text and number; the alternatives stand in the tokens' order.
    read: list[Token] = []
    for place, entry in enumerate(found):
        word, value = get_path(entry, name), finite_number(get_path(entry, logprob))
        if not isinstance(word, str) or value is None:
            return ()
        others = alternatives[place] if place < len(alternatives) else []
        pairs = [(get_path(other, name), finite_number(get_path(other, logprob))) for other in others]
        read.append(Token(word, value, {w: p for w, p in pairs if isinstance(w, str) and p is not None}))
    return tuple(read) if "".join(token.text for token in read) == said else ()


def likeliest_grade(probabilities: dict[Any, Any], grades: int) -> tuple[str, dict[str, float]] | None:
    """Return the likeliest grade as the answer's JSON, and the probability of each; None unless each grade has one."""
    if set(probabilities) != set(range(grades + 1)) or not all(type(grade) is int for grade in probabilities):
        return None
    if not all(finite_number(p) is not None and 0 <= p <= 1 for p in probabilities.values()):
        return None
    likeliest = max(probabilities, key=lambda grade: (probabilities[grade], -grade))
    if grades == 1:
        return json.dumps({"response": "yes" if likeliest else "no"}), {"no": probabilities[0], "yes": probabilities[1]}
    return json.dumps({"score": likeliest}), {str(grade): probabilities[grade] for grade in sorted(probabilities)}


def finite_number(value: object) -> float | None:
    """Return a number that the database's JSON can hold; None for anything else, true and false included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Compared, not converted: a whole number beyond every float would raise OverflowError.
    return float(value) if abs(value) <= sys.float_info.max else None


def get_count(value: object, *path: str | int) -> int:
    """Return a count of tokens at the end of the path; 0 where there is none or it is no count."""
    number = get_path(value, *path)
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= LARGEST:
        return 0
    return int(number)


def count_tokens(counts: object, places: Mapping[str, str], needed: Sequence[str]) -> Usage:
    """Return the tokens of an answer; `places`: where the provider counts which, "a + b" is a sum."""
    found = {
        name: sum(get_count(counts, *path.split(".")) for path in paths.split(" + ")) for name, paths in places.items()
    }
    # Some count thoughts in the total alone (Gemini in OpenAI's format): they are billed as output.
    if (beside := found.pop("total", 0) - found["input"] - found["output"]) > 0:
        found["output"] += beside
        found["reasoning"] = found.get("reasoning", 0) + beside
    # Where one of the needed counts is missing, what the answer used is unknown.
    known = [get_path(counts, *path.split(".")) for path in needed]
    return Usage(**found, said=all(isinstance(one, int | float) and not isinstance(one, bool) for one in known))


def read_bill(counts: object, place: str, units: float) -> float | None:
    """Return USD that an answer's usage says the call cost, in `units` a dollar; None where it says nothing."""
    charged = finite_number(get_path(counts, *place.split("."))) if place else None
    if charged is None or charged < 0:
        return None
    # OpenRouter with a key of one's own at the provider: what that charges stands beside the fee.
    upstream = finite_number(get_path(counts, "cost_details", "upstream_inference_cost"))
    own_key = get_path(counts, "is_byok") is True and upstream is not None and upstream > 0
    return (charged + (upstream or 0.0 if own_key else 0.0)) / units


def refusal_error(
    host: str, status: int, raw: str, retry_after: float | None, body: dict[str, Any] | None = None
) -> ProviderError:
    """Return the error that a status and its body mean. 2xx: an error body without a usable code.

    `body`: as the provider reads it, where its error does not stand at the top.
    """
    body = parse_body(raw) if body is None else body
    error = body.get("error", body)
    said = storable_text(get_path(error, "message")) or storable_text(error) or raw
    message = f"{host}: {status} {' '.join(said.split())[:300]}".strip()
    kind: type[ProviderError] = Rejected
    if status in REFUSALS or _is_account(status, error, said):
        kind = Refused
    elif status == 400 and storable_text(get_path(error, "code")) in MISSED:
        kind = BadAnswer
    elif status == 429 and "request too large" in said.lower():
        pass  # More tokens than the account has in a minute: no wait makes it smaller.
    elif status == 429:
        kind = RateLimited
        retry_after = next(
            (one for one in (retry_after, _retry_delay(error), _wait_in_words(said)) if one), retry_after
        )
    elif status >= 500 or status in BUSY:
        kind = Overloaded
    elif status == 408:
        kind = Unreachable
    elif status < 300:
        kind = BadAnswer
    elif status < 400:
        message = f"{host}: {status} redirects are not followed; correct the base_url"
    return kind(storable_text(message), status=status, raw=raw, retry_after=retry_after)


def _is_account(status: int, error: object, said: str) -> bool:
    """Return whether a 400 or 429 speaks of the account."""
    # No quota or credit (OpenAI, Anthropic, DashScope), a wrong key (Google, xAI), a model that is not there (LiteLLM).
    if status == 429:
        return not NO_QUOTA.isdisjoint(storable_text(get_path(error, name)) for name in ("code", "type"))
    if status != 400:
        return False
    reasons = [get_path(detail, "reason") for detail in get_list(error, "details")]
    owes = storable_text(get_path(error, "code")) == "Arrearage" or "credit balance is too low" in said
    return owes or "API_KEY_INVALID" in reasons or "Incorrect API key" in said or "Invalid model name" in said


def error_code(body: dict[str, Any], status: int) -> int:
    """Return the HTTP status that an error body under a 2xx names (some gateways do that), else the answer's own."""
    code = get_path(body, "error", "code")
    return code if isinstance(code, int) and 400 <= code < 600 else status


def _wait_in_words(said: str) -> float | None:
    """Some say it in the message alone: "Please try again in 1m3.5s" (OpenAI), "retry after 20 seconds" (Azure)."""
    found = WAIT_IN_WORDS.search(said)
    return read_duration((found[1] or found[2]).lower()) if found else None


def _retry_delay(error: object) -> float | None:
    """Google writes the wait into the body: details[].retryDelay = "34s"."""
    for detail in get_list(error, "details"):
        delay = storable_text(get_path(detail, "retryDelay"))
        if delay.endswith("s") and delay[:-1].replace(".", "", 1).isdigit():
            return float(delay[:-1])
    return None
