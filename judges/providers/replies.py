"""Reading bodies that may hold anything: parts of an answer, the error of a refusal."""

import html
import json
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from judges.errors import BadAnswer, Declined, Overloaded, ProviderError, RateLimited, Refused, Rejected, Unreachable
from judges.rates import read_duration
from judges.records import Token, Usage

LARGEST = 2**31 - 1  # What the columns of counts hold.
LONGEST_REASON = 200  # Characters of a provider's own words that a reason keeps.
# Statuses that speak of the account, the model or the address, and not of the question: a proxy
# that asks who we are (407), a model that is gone (410), an account that Fireworks holds (412), a
# server without this endpoint (501). 403 is not among them: moderation and firewalls answer with
# it, too.
REFUSALS = (401, 402, 404, 407, 410, 412, 501)
# Statuses below 500 that pass: a conflict, a failed dependency (Bedrock's ModelErrorException,
# TGI), too early, Groq's flex tier without room (498), and a gateway that took us for gone (499).
PASSING = (409, 424, 425, 498, 499)
# Codes of a 400 that means: the model did not keep to the form this time (Groq). Another try may.
WAIT_IN_WORDS = re.compile(
    r"(?:try again|retry) (?:in ((?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+)|(?:after|in) (\d+) seconds?)", re.I
)
MISSED = {"json_validate_failed", "tool_use_failed"}
# Codes of a 400, 403 or 429 that no waiting ends: no quota, credit or budget is left.
NO_QUOTA = {
    *("insufficient_quota", "billing_not_active", "billing_hard_limit_reached", "exceeded_current_quota_error"),
    *("budget_exceeded", "Arrearage", "AllocationQuota.FreeTierOnly"),
}
# The same in words: spent money (xAI, Zhipu, Google's prepaid accounts and caps).
SPENT = re.compile(
    r"insufficient (account )?(balance|funds|credits?)|please recharge|out of credits|used all available credits|"
    r"credits? (balance )?(is|are|has been|have been) (depleted|exhausted|used up)|spend(ing)? (cap|limit)|"
    r"free tier .{0,40}exhausted|budget has been exceeded",
    re.IGNORECASE,
)
# What Google says of a model that the project's tier does not have at all: no day brings it.
NEVER = re.compile(r"\blimit: 0\b")
# Where Google's days begin, and for how long a refusal may be of the day before.
PACIFIC, NEW_DAY = ZoneInfo("America/Los_Angeles"), timedelta(minutes=10)
# Words of a 400 or 403 that speak of the account or its settings: credit and spend limits
# (Anthropic), a wrong key (Google, xAI), a model that is not there (LiteLLM, Groq) or goes by a
# profile alone (Bedrock), a country (Google), an organization that is closed (Anthropic, Groq),
# another address than the API's (LM Studio, which answers 200).
ACCOUNT = re.compile(
    r"credit balance is too low|reached your specified .{0,20}usage limits?|incorrect api key|api[_ ]key[_ ]invalid|"
    r"invalid model name|has been decommissioned|on-demand throughput isn.t supported|user location is not supported|"
    r"organization has been (disabled|restricted)|unexpected endpoint or method",
    re.IGNORECASE,
)
# Words of a 400 that speak of the moment: the model fell over or is being loaded (LM Studio).
MOMENT = re.compile(r"has crashed|model (is )?unloaded|temporarily unavailable|is overloaded|try again later", re.I)
# Words of a 403 that speak of the key's rights, where none of what was sent.
DENIED = re.compile(
    r"permission.?(denied|error)|does not have.{0,20}permission|accessdenied|unrecognizedclient|signature|credential|"
    r"security token|unsupported_country|not authorized|access denied due to",
    re.IGNORECASE,
)
# Words of a refusal about what was sent: moderation, filters, guardrails, length.
CONTENT = re.compile(
    r"content.{0,3}(policy|filter|management|safety|violat|moderation|risk|exists risk)|moderat(ion|ed)|flagged|"
    r"safety.{0,3}(check|system|polic|filter|reason)|usage.{0,3}(guideline|polic)|responsible.?ai|"
    r"data.?inspection|inappropriate|sensitive.{0,3}(content|words?|information)|invalid_prompt|prohibited.{0,3}content|"
    r"harmful|jailbreak|guardrail|unsafe|high.risk|blocked by|violat.{0,60}(polic|guideline|terms|practice)|敏感|违规",
    re.IGNORECASE,
)
CONTEXT = re.compile(r"context[ _]?(length|window|size)|maximum (context|model length)|max_model_len", re.IGNORECASE)
LENGTH = re.compile(
    CONTEXT.pattern + r"|too (long|large|many tokens)|exceeds?.{0,40}(tokens?|length|size)|tokens?.{0,40}must be <=",
    re.IGNORECASE,
)
HTML = re.compile(r"\s*(<!doctype html|<html|<head|<body|<title|<h1|<center)", re.IGNORECASE)
HEADLINE = re.compile(r"<(title|h1)\b[^>]*>(.*?)</\1", re.IGNORECASE | re.DOTALL)
TAG = re.compile(r"<[^>]*>")
# Where an error keeps its words, and its codes.
WORDS = ("message", "msg", "detail", "error", "errors", "title", "description")
CODES = ("code", "type", "error_type", "status", "param")


def parse_body(raw: str) -> dict[str, Any]:
    """Return the JSON object in a body; {} when it holds no object."""
    try:
        body = json.loads(raw.removeprefix("\ufeff"))
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
    """Return text that the database can hold: no lone surrogates, no NUL; "" for no text."""
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
    """Return a number for the database's JSON; None for all else, booleans too."""
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
    """Return the tokens of an answer; `places`: where the provider counts what, "a + b" a sum."""
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
    """Return USD of a call by its usage, in `units` a dollar; None if silent."""
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

    `body`: what `raw` holds, where reading it takes more than JSON.
    """
    whole: object = body or _parse_any(raw)
    error = get_path(whole, "error") or whole
    said, codes = error_text(error, raw), [*_codes_of(error), *_codes_of(whole), *_codes_of(_error_behind(error))]
    if 300 <= status < 400:
        said = "redirects are not followed; correct the base_url"
    kind = _error_kind(status, error, codes, said, raw)
    if kind is RateLimited:
        waits = (retry_after, _retry_delay(error), _format_wait(said))
        retry_after = next((wait for wait in waits if wait), retry_after)
        if quota := _quota_of_day(error):
            said = f"the quota of the day is used up ({quota}): {said}"
            # Its retryDelay is the minute's, also where the day is over.
            retry_after = max(retry_after or 0.0, seconds_of_day(datetime.now(PACIFIC)))
    message = storable_text(f"{host}: {status} {said}".strip())
    return kind(message, status=status, raw=raw, retry_after=retry_after)


def _error_kind(status: int, error: object, codes: list[str], said: str, raw: str) -> type[ProviderError]:
    """`codes` and `said`: those of the error, its words."""
    told = [*codes, said]
    if status in REFUSALS:
        return Refused
    if status == 408:
        return Unreachable
    if status >= 500 or status in PASSING:
        # Gateways answer so when what stands behind them refused the text, and llama.cpp to what is too long for it.
        return Declined if _is_content(error, codes) or CONTEXT.search(said) else Overloaded
    if not NO_QUOTA.isdisjoint(told) or any(map(SPENT.search, told)):
        return Refused
    if status == 429:
        # More tokens than the account has in a minute: no wait makes it smaller.
        if any("request too large" in words.lower() for words in told):
            return Declined
        return Refused if NEVER.search(raw) else RateLimited
    if 300 <= status < 400:
        return Rejected
    if status == 400 and not MISSED.isdisjoint(told):
        return BadAnswer
    # Google's FAILED_PRECONDITION: a country that the API does not serve, or billing that is off.
    if "FAILED_PRECONDITION" in told or any(map(ACCOUNT.search, told)):
        return Refused
    # A firewall's page instead of the provider's answer is about the text sent through.
    if status == 413 or (status == 403 and HTML.match(raw)) or _is_content(error, told):
        return Declined
    if status == 403 and any(map(DENIED.search, told)):
        return Refused
    if status == 400 and MOMENT.search(said):
        return Overloaded
    return BadAnswer if status < 300 else Rejected


def _parse_any(raw: str) -> object:
    """Return the object of a body; the first of a list of them, as Google streams errors."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return body[0] if isinstance(body, list) and body else body


def error_text(error: object, raw: str) -> str:
    """Return what an error says in plain words, on one line: its message, a page's headline, else the body's begin."""
    said = _shorten_text(error) or raw
    # Gateways say of another provider's error only that there was one, and show it beside.
    if behind := _shorten_text(_error_behind(error)):
        said = f"{said}: {behind}"
    if HTML.match(said):
        headline = HEADLINE.search(said)
        said = f"a page of HTML in place of an answer: {headline[2]}" if headline else "a page of HTML, no answer"
    said = html.unescape(TAG.sub(" ", said)) if TAG.search(said) else said
    said = storable_text(" ".join(said.split()))
    return said if len(said) <= LONGEST_REASON else said[: LONGEST_REASON - 3].rstrip() + "..."


def _error_behind(error: object) -> object:
    """Return another provider's error beside a gateway's; None where it shows none."""
    behind = get_path(error, "metadata", "raw")
    found = (_parse_any(behind) or behind) if isinstance(behind, str) else behind
    return get_path(found, "error") or found


def _shorten_text(value: object, depth: int = 4) -> str:
    """Return the first text under the names that errors keep their words in."""
    if isinstance(value, str) or not depth:
        return storable_text(value).strip()
    if isinstance(value, list):
        return next(filter(None, (_shorten_text(entry, depth - 1) for entry in value)), "")
    if isinstance(value, dict):
        return next(filter(None, (_shorten_text(value.get(name), depth - 1) for name in WORDS)), "")
    return ""


def _codes_of(error: object) -> list[str]:
    """Return the codes of an error, and of those within it (Azure's innererror)."""
    found = [storable_text(get_path(error, name)) for name in CODES]
    found += [
        storable_text(get_path(error, "innererror", "code")),
        storable_text(get_path(error, "inner_error", "code")),
    ]
    found += [storable_text(get_path(detail, "reason")) for detail in get_list(error, "details")]
    return [code for code in found if code]


def _is_content(error: object, told: list[str]) -> bool:
    """Return whether a refusal speaks of the text that was sent."""
    # OpenRouter names its reasons, and shows what it flagged; Azure says what its filter saw.
    shown = (("metadata", "reasons"), ("metadata", "flagged_input"), ("innererror", "content_filter_result"))
    return any(get_path(error, *path) for path in shown) or any(
        CONTENT.search(words) or LENGTH.search(words) for words in told
    )


def error_code(body: dict[str, Any], status: int) -> int:
    """Return the HTTP status that an error body under a 2xx names (some gateways do that), else the answer's own."""
    code = get_path(body, "error", "code")
    code = int(code) if isinstance(code, str) and code.isdecimal() and len(code) == 3 else code
    return code if isinstance(code, int) and 400 <= code < 600 else status


def _format_wait(said: str) -> float | None:
    """Some say it in the message alone: "Please try again in 1m3.5s" (OpenAI), "retry after 20 seconds" (Azure)."""
    found = WAIT_IN_WORDS.search(said)
    return read_duration((found[1] or found[2]).lower()) if found else None


def _quota_of_day(error: object) -> str:
    """Return the name of a day's quota that is used up, as Google names it; "" without one."""
    details = [*get_list(error, "details"), *get_list(_error_behind(error), "details")]
    violations = [violation for detail in details for violation in get_list(detail, "violations")]
    names = [storable_text(get_path(violation, "quotaId"), 100) for violation in violations]
    return next((name for name in names if "PerDay" in name), "")


def seconds_of_day(now: datetime) -> float:
    """Return the seconds left of Google's day; a minute while it may not have begun there."""
    began = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if now - began < NEW_DAY:
        return 60.0
    return (began + timedelta(days=1)).timestamp() - now.timestamp()


def _retry_delay(error: object) -> float | None:
    """Google writes the wait into the body: details[].retryDelay = "34s"."""
    for detail in get_list(error, "details"):
        delay = storable_text(get_path(detail, "retryDelay"))
        if delay.endswith("s") and delay[:-1].replace(".", "", 1).isdigit():
            return float(delay[:-1])
    return None
